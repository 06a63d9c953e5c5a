//! Codes and links that prove an e-mail address, and how many of them may be asked for.
//!
//! No stranger locks the owner of an address out. Codes are counted for each pair of address and network, so what others ask
//! for leaves the owner's alone. The bound for the address, which keeps its mailbox from being flooded, counts only mails
//! whose links are still good: where it refuses, the owner has a link that signs in. The same holds for the bound of tries,
//! which keeps many networks together from guessing: it ends codes, not links.
use crate::base::hash::{hmac_sha256, sha256_hex};
use crate::base::ids::SignInId;
use crate::base::limits::{
    FIRST_LINK_MS, INVITATIONS_SENT_WINDOW_MS, INVITATIONS_TO_ADDRESS_MAX, SIGN_IN_ADDRESS_DAY_TRIES_MAX,
    SIGN_IN_ADDRESS_MAX, SIGN_IN_ADDRESS_TRIES_MAX, SIGN_IN_BLOCK_MAX, SIGN_IN_DAY_MS, SIGN_IN_MAILS_MAX,
    SIGN_IN_MS, SIGN_IN_SOURCE_MAX, SIGN_IN_TRIES_MAX, SIGN_IN_WINDOW_MS,
};
use crate::ports::statement::{Row, Statement};
use crate::services::Services;
use crate::sql;
use crate::storage::batch::Batch;
use crate::storage::fault::Fault;

/// Who asks for a code.
pub(crate) struct Asker<'a> {
    /// The address to prove, in lower case.
    pub email: &'a str,
    /// The network that asks.
    pub source: &'a str,
    /// The hash of the browser's visit: the code is good only there.
    pub visit_hash: &'a str,
    /// Where to go afterwards, a path below `/dashboard`.
    pub next: &'a str,
}

/// What is sent to the address.
pub(crate) struct Proof {
    /// Six digits.
    pub code: String,
    /// The token of the link.
    pub token: String,
}

/// An address that was proven.
pub(crate) struct Proven {
    pub email: String,
    pub next: String,
    /// Whether it is the operator's link, which proves no address.
    pub is_operator: bool,
    /// Uses the proof up, in the batch of the sign-in: of two that use it at once, one fails.
    pub uses: Batch,
}

/// Why no code is sent.
pub(crate) enum Withheld {
    /// This network asked for too many.
    Network,
    /// Many were sent to the address just now: their links are good.
    Address,
}

/// Why a code was not accepted.
pub(crate) enum Refused {
    /// So many other tries are possible.
    Wrong(i64),
    /// None is open in this browser, or it has expired, or it was tried too often.
    Gone,
    /// Codes of the address were tried too often lately; its links are good.
    Address(Lately),
}

/// Within which time codes of an address were tried too often.
pub(crate) enum Lately {
    Hour,
    Day,
}

/// How many tries of a row were wrong: the last one of a code that signed somebody in was not.
const WRONG: &str = "SUM(CASE WHEN s.used_at IS NULL THEN s.tries ELSE MAX(s.tries - 1, 0) END)";

/// The wrong tries of an address within a day.
fn wrong_tries(email: &str, now_ms: i64) -> Statement {
    sql!(
        format!("SELECT {WRONG} AS wrong FROM sign_ins AS s WHERE s.email = :email AND s.created_at > :day"),
        email = email,
        day = now_ms - SIGN_IN_DAY_MS
    )
}

/// The latest code that this browser waits for.
fn awaited(visit_hash: &str, now_ms: i64) -> Statement {
    sql!(
        "SELECT email, tries FROM sign_ins WHERE visit_hash = :visit AND kind = 'email' AND used_at IS NULL AND expires_at > :now
         ORDER BY created_at DESC, id DESC LIMIT 1",
        visit = visit_hash,
        now = now_ms
    )
}

/// The networks of an IPv6 network's /48, as a range of texts; an IPv4 address alone.
fn block(source: &str) -> (String, String) {
    if !source.contains(':') {
        return (source.to_owned(), format!("{source} "));
    }
    let block = source.split(':').take(3).collect::<Vec<_>>().join(":");
    (format!("{block}:"), format!("{block};"))
}

impl Services {
    /// Makes a code and a link for an address.
    pub(crate) async fn prove_address(
        &self,
        asker: &Asker<'_>,
        now_ms: i64,
    ) -> Result<Result<Proof, Withheld>, Fault> {
        let id: SignInId = self.new_id();
        let mut bytes = [0; 8];
        self.ports().random.fill(&mut bytes);
        let (from, to) = block(asker.source);
        let code = format!("{:06}", u64::from_le_bytes(bytes) % 1_000_000);
        let (token, link_hash) = self.new_token();
        let insert = sql!(
            "INSERT INTO sign_ins (id, kind, email, source, visit_hash, code_hash, link_hash, next, tries, created_at, expires_at)
             SELECT :id, 'email', :email, :source, :visit, :code, :link, :next, 0, :now, :end
             WHERE (SELECT COUNT(*) FROM sign_ins WHERE email = :email AND source = :source AND created_at > :since) < :mails
             AND (SELECT COUNT(*) FROM sign_ins WHERE email = :email AND kind = 'email' AND created_at > :good) < :all
             AND (SELECT COUNT(*) FROM sign_ins WHERE source = :source AND created_at > :since) < :most
             AND (SELECT COUNT(*) FROM sign_ins WHERE source >= :from AND source < :to AND created_at > :since) < :block
             RETURNING id",
            id = &id,
            email = asker.email,
            source = asker.source,
            visit = asker.visit_hash,
            code = self.code_hash(&id, &code),
            link = link_hash,
            next = asker.next,
            now = now_ms,
            end = now_ms + SIGN_IN_MS,
            since = now_ms - SIGN_IN_WINDOW_MS,
            good = now_ms - SIGN_IN_MS,
            mails = SIGN_IN_MAILS_MAX,
            all = SIGN_IN_ADDRESS_MAX,
            most = SIGN_IN_SOURCE_MAX,
            from = from,
            to = to,
            block = SIGN_IN_BLOCK_MAX
        );
        let sent = sql!(
            "SELECT COUNT(*) AS sent FROM sign_ins WHERE email = :email AND kind = 'email' AND created_at > :good",
            email = asker.email,
            good = now_ms - SIGN_IN_MS
        );
        let [made, sent] = self.write([insert, sent]).await?;
        if !made.is_empty() {
            return Ok(Ok(Proof { code, token }));
        }
        let sent = sent.first().map(|row| row.integer("sent")).transpose()?.unwrap_or_default();
        Ok(Err(if sent < SIGN_IN_ADDRESS_MAX { Withheld::Network } else { Withheld::Address }))
    }

    /// Whether an invitation may be mailed to an address, and counts it: whoever invites chooses the address and words in
    /// the mail, and may have many workspaces.
    pub(crate) async fn may_mail_invitation(&self, email: &str, now_ms: i64) -> Result<bool, Fault> {
        let id: SignInId = self.new_id();
        let count = sql!(
            "INSERT INTO sign_ins (id, kind, email, source, visit_hash, code_hash, link_hash, next, tries, created_at, expires_at)
             SELECT :id, 'invitation', :email, '', '', '', :id, '', 0, :now, :now
             WHERE (SELECT COUNT(*) FROM sign_ins WHERE email = :email AND kind = 'invitation' AND created_at > :since) < :most
             RETURNING id",
            id = &id,
            email = email,
            now = now_ms,
            since = now_ms - INVITATIONS_SENT_WINDOW_MS,
            most = INVITATIONS_TO_ADDRESS_MAX
        );
        let [counted] = self.write([count]).await?;
        Ok(!counted.is_empty())
    }

    /// The address whose code this browser waits for.
    pub(crate) async fn awaited_address(
        &self,
        visit_hash: &str,
        now_ms: i64,
    ) -> Result<Option<String>, Fault> {
        let [found] = self.read([awaited(visit_hash, now_ms)]).await?;
        Ok(found.first().map(|row| row.text("email")).transpose()?)
    }

    /// Tries a code in the browser that asked for it. Each try is counted before it is compared.
    pub(crate) async fn try_code(
        &self,
        visit_hash: &str,
        code: &str,
        now_ms: i64,
    ) -> Result<Result<Proven, Refused>, Fault> {
        let count = sql!(
            format!(
                "UPDATE sign_ins SET tries = tries + 1 WHERE id = (
                   SELECT id FROM sign_ins WHERE visit_hash = :visit AND kind = 'email' AND used_at IS NULL AND expires_at > :now
                   ORDER BY created_at DESC, id DESC LIMIT 1) AND tries < :most
                 AND (SELECT SUM(s.tries) FROM sign_ins AS s WHERE s.email = sign_ins.email AND s.created_at > :since) < :all
                 AND (SELECT {WRONG} FROM sign_ins AS s WHERE s.email = sign_ins.email AND s.created_at > :day) < :wrong
                 RETURNING id, kind, email, next, code_hash, tries"
            ),
            visit = visit_hash,
            now = now_ms,
            since = now_ms - SIGN_IN_WINDOW_MS,
            day = now_ms - SIGN_IN_DAY_MS,
            most = SIGN_IN_TRIES_MAX,
            all = SIGN_IN_ADDRESS_TRIES_MAX,
            wrong = SIGN_IN_ADDRESS_DAY_TRIES_MAX
        );
        let [counted, tried] = self.write([count, awaited(visit_hash, now_ms)]).await?;
        let Some(row) = counted.first() else {
            let tried = tried.first();
            let Some(row) =
                tried.filter(|row| row.integer("tries").is_ok_and(|tries| tries < SIGN_IN_TRIES_MAX))
            else {
                return Ok(Err(Refused::Gone));
            };
            let [sum] = self.read([wrong_tries(row.str("email")?, now_ms)]).await?;
            let wrong =
                sum.first().map(|row| row.optional_integer("wrong")).transpose()?.flatten().unwrap_or(0);
            let is_of_day = wrong >= SIGN_IN_ADDRESS_DAY_TRIES_MAX;
            return Ok(Err(Refused::Address(if is_of_day { Lately::Day } else { Lately::Hour })));
        };
        let id: SignInId = row.id("id")?;
        // HMACs of the code, so that the time of the comparison tells nothing about it.
        if row.str("code_hash")? == self.code_hash(&id, code) {
            return Ok(Ok(proven(row, now_ms)?));
        }
        let left = SIGN_IN_TRIES_MAX - row.integer("tries")?;
        Ok(Err(if left > 0 { Refused::Wrong(left) } else { Refused::Gone }))
    }

    /// What a link proves, without using it up.
    pub(crate) async fn read_link(&self, token: &str, now_ms: i64) -> Result<Option<Proven>, Fault> {
        let find = sql!(
            "SELECT id, kind, email, next FROM sign_ins WHERE link_hash = :hash AND used_at IS NULL AND expires_at > :now",
            hash = sha256_hex(token.as_bytes()),
            now = now_ms
        );
        let [found] = self.read([find]).await?;
        found.first().map(|row| proven(row, now_ms)).transpose()
    }

    /// The token of a link that signs the operator in, as long as the first workspace waits for that.
    pub(crate) async fn first_link(&self) -> Result<Option<String>, Fault> {
        match self.awaits_the_operator().await? {
            true => self.operator_link(FIRST_LINK_MS).await.map(Some),
            false => Ok(None),
        }
    }

    /// The token of a link that signs the operator in. It replaces an earlier one.
    pub(crate) async fn operator_link(&self, good_ms: i64) -> Result<String, Fault> {
        let now_ms = self.ports().clock.now_ms();
        let id: SignInId = self.new_id();
        let (token, hash) = self.new_token();
        let replace = sql!("DELETE FROM sign_ins WHERE kind = 'first'");
        let insert = sql!(
            "INSERT INTO sign_ins (id, kind, email, source, visit_hash, code_hash, link_hash, next, tries, created_at, expires_at)
             VALUES (:id, 'first', '', '', '', '', :link, '/dashboard', 0, :now, :end)",
            id = &id,
            link = hash,
            now = now_ms,
            end = now_ms + good_ms
        );
        self.write([replace, insert]).await?;
        Ok(token)
    }

    /// A code is short: without the server secret, its hash tells nothing.
    fn code_hash(&self, id: &SignInId, code: &str) -> String {
        let message = format!("sign-in code {id} {code}");
        sha256_hex(&hmac_sha256(self.config().secret.as_bytes(), message.as_bytes()))
    }
}

fn proven(row: Row<'_>, now_ms: i64) -> Result<Proven, Fault> {
    let id: SignInId = row.id("id")?;
    Ok(Proven {
        email: row.text("email")?,
        next: row.text("next")?,
        is_operator: row.str("kind")? == "first",
        uses: Batch::from(use_up(&id, now_ms)),
    })
}

/// Marks a proof as used; a second use undoes its batch.
fn use_up(id: &SignInId, now_ms: i64) -> [Statement; 2] {
    let guard = sql!(
        "INSERT INTO batch_guard (proof) SELECT 0 WHERE NOT EXISTS
         (SELECT 1 FROM sign_ins WHERE id = :id AND used_at IS NULL)",
        id = id
    );
    [guard, sql!("UPDATE sign_ins SET used_at = :now WHERE id = :id", id = id, now = now_ms)]
}
