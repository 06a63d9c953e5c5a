//! What the pages load: one stylesheet and small modules of plain JavaScript, embedded in the engine.
use std::sync::LazyLock;

use crate::base::hash::policy_source;
use crate::base::script::script;

const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// The stylesheet: in the page at a browser's first visit, so that it paints after one round trip; a file from then on.
pub const STYLE: &str = script!("../base/theme.css", "assets/app.css");

/// The cookie of a browser that has the stylesheet; its value is [`hash`].
pub const STYLE_COOKIE: &str = "sidetone_style";

/// What a policy allows the stylesheet in the page by.
pub fn style_source() -> &'static str {
    static SOURCE: LazyLock<String> = LazyLock::new(|| policy_source(STYLE));
    &SOURCE
}

/// Every file: its name, its media type and its content. Served below `/dashboard/assets/{hash}/`, where it never
/// changes.
pub const ASSETS: &[(&str, &str, &[u8])] = &[
    ("app.css", CSS, STYLE.as_bytes()),
    ("app.js", SCRIPT, script!("assets/app.js").as_bytes()),
    ("palette.js", SCRIPT, script!("assets/palette.js").as_bytes()),
    ("call.js", SCRIPT, script!("assets/call.js").as_bytes()),
    ("draft.js", SCRIPT, script!("assets/draft.js").as_bytes()),
    ("form.js", SCRIPT, script!("assets/form.js").as_bytes()),
    ("talk.js", SCRIPT, script!("assets/talk.js").as_bytes()),
    ("icon.svg", "image/svg+xml", include_bytes!("assets/icon.svg")),
];

static HASH: LazyLock<String> = LazyLock::new(|| {
    let mut hasher = crc32fast::Hasher::new();
    for (name, _, content) in ASSETS {
        hasher.update(name.as_bytes());
        hasher.update(content);
    }
    format!("{:08x}", hasher.finalize())
});

/// Changes with every change of a file, so that browsers may keep them for ever.
pub fn hash() -> &'static str {
    &HASH
}

/// The address of a file.
pub(crate) fn url(name: &str) -> String {
    format!("/dashboard/assets/{}/{name}", hash())
}
