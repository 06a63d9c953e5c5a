//! People, their sessions and sign-in, keys that are guessed, mail, and forms.

/// Invalid keys from one address before requests are rejected with 429.
pub const INVALID_CREDENTIALS_MAX: u32 = 10;
/// The window in which invalid keys are counted.
pub const INVALID_CREDENTIALS_WINDOW_MS: i64 = 60_000;
/// Addresses that are tracked; beyond that the older half is dropped.
pub const INVALID_CREDENTIALS_ADDRESSES_MAX: usize = 10_000;
/// Sessions of the dashboard end this long after they were last used.
pub const SESSION_MS: i64 = 30 * 24 * 3_600_000;
/// A session that is used is extended at most this often.
pub const SESSION_SEEN_MS: i64 = 3_600_000;
/// The time of an API key's last use is at most this much behind, to save writes.
pub const KEY_USED_MS: i64 = 3_600_000;
/// Sessions of one person; the one that was not used for longest goes.
pub const SESSIONS_MAX: i64 = 20;
/// Characters that are kept of what a browser says about itself.
pub const SESSION_CLIENT_CHARS_MAX: usize = 200;
/// Workspaces of one person.
pub const MEMBERSHIPS_MAX: i64 = 100;
/// How long a code and a link to sign in are good.
pub const SIGN_IN_MS: i64 = 600_000;
/// Tries of one code.
pub const SIGN_IN_TRIES_MAX: i64 = 5;
/// The time over which requests for codes are counted.
pub const SIGN_IN_WINDOW_MS: i64 = 3_600_000;
/// Codes for one address that one network asks for within [`SIGN_IN_WINDOW_MS`].
pub const SIGN_IN_MAILS_MAX: i64 = 5;
/// Codes for one address, whoever asks, within [`SIGN_IN_MS`]: where this refuses, the links of those mails are still good.
pub const SIGN_IN_ADDRESS_MAX: i64 = 10;
/// Tries of all codes for one address within [`SIGN_IN_WINDOW_MS`], whoever asked for them.
pub const SIGN_IN_ADDRESS_TRIES_MAX: i64 = 25;
/// Wrong tries of all codes for one address within [`SIGN_IN_DAY_MS`]: whoever guesses all day has one chance in 20,000.
pub const SIGN_IN_ADDRESS_DAY_TRIES_MAX: i64 = 50;
/// The time over which wrong tries are counted.
pub const SIGN_IN_DAY_MS: i64 = 24 * SIGN_IN_WINDOW_MS;
/// Codes for one network address within [`SIGN_IN_WINDOW_MS`].
pub const SIGN_IN_SOURCE_MAX: i64 = 20;
/// The same for all networks of an IPv6 block (/48), which one customer may have.
pub const SIGN_IN_BLOCK_MAX: i64 = 200;
/// Sign-ins at an OpenID provider that one network address begins within [`SIGN_IN_WINDOW_MS`] and does not finish. Each
/// costs a row and no mail, and an office has one address.
pub const OPENID_SOURCE_MAX: i64 = 300;
/// How long an invitation is good.
pub const INVITATION_MS: i64 = 7 * 24 * 3_600_000;
/// Open invitations of a workspace.
pub const INVITATIONS_MAX: i64 = 100;
/// Invitations that a workspace sends within [`INVITATIONS_SENT_WINDOW_MS`].
pub const INVITATIONS_SENT_MAX: i64 = 100;
/// Invitations that are mailed to one address, by all workspaces together, within [`INVITATIONS_SENT_WINDOW_MS`]. Others
/// are made without a mail, and their link is handed over.
pub const INVITATIONS_TO_ADDRESS_MAX: i64 = 5;
/// The time over which sent invitations are counted.
pub const INVITATIONS_SENT_WINDOW_MS: i64 = 3_600_000;
/// People of a workspace.
pub const PEOPLE_MAX: i64 = 200;
/// How long an entry of the audit log is kept.
pub const AUDIT_KEPT_MS: i64 = 400 * 24 * 3_600_000;
/// Deadline of a request to an OpenID provider.
pub const OPENID_DEADLINE_MS: u64 = 10_000;
/// Bytes that are read of its answer.
pub const OPENID_REPLY_BYTES_MAX: usize = 256 * 1024;
/// How long its document and its keys are used before they are fetched again.
pub const OPENID_KEPT_MS: i64 = 600_000;
/// How old its keys are at least when they are fetched again for a key that is not among them.
pub const OPENID_REFRESH_MS: i64 = 60_000;
/// Characters of an e-mail address (RFC 5321, 4.5.3.1.3).
pub const EMAIL_CHARS_MAX: usize = 254;
/// Fields of a form.
pub const FORM_FIELDS_MAX: usize = 2_000;
/// Deadline of a request to the mail API.
pub const MAIL_DEADLINE_MS: u64 = 10_000;
/// Bytes that are read of its answer.
pub const MAIL_REPLY_BYTES_MAX: usize = 16 * 1024;
/// Characters of a workspace's name in a mail; a longer one is left out.
pub const MAIL_NAME_CHARS_MAX: usize = 60;
/// How long the sign-in link of the first start is good; the next start prints another one.
pub const FIRST_LINK_MS: i64 = 24 * 3_600_000;
