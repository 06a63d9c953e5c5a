//! What every page of HTML that the engine makes begins with.
use maud::{DOCTYPE, Markup, html};

/// A whole page. `facts` are for its script and stand before the title, `loads` is its style and what else it loads.
pub(crate) fn html_page(title: &str, facts: &Markup, loads: &Markup, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width,initial-scale=1";
                meta name="color-scheme" content="light dark";
                (facts)
                title { (title) }
                (loads)
            }
            body { (body) }
        }
    }
}
