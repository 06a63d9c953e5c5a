//! Charts over time, as SVG: nothing is loaded for them.
use maud::{Markup, html};

/// A part of a bar: a class of the stylesheet, a name, a count for each bar.
pub struct Series {
    /// The colour's class.
    pub class: &'static str,
    /// What it counts.
    pub name: &'static str,
    /// A count for each bar.
    pub counts: Vec<i64>,
}

/// What a bar is called.
pub struct Label {
    /// Such as `18 Nov`, or `09:00 UTC`.
    pub text: String,
    /// The moment that it begins at, where the script tells it in the viewer's zone: a day of UTC is no day elsewhere.
    pub at: Option<String>,
}

impl Label {
    fn shown(&self) -> Markup {
        html! { @if let Some(at) = &self.at { time datetime=(at) data-date="hour" { (self.text) } } @else { (self.text) } }
    }
}

/// Bars over time, stacked. `labels` names each bar; `about` says what is seen, to those who do not see it.
pub fn bars(about: &str, labels: &[Label], series: &[Series]) -> Markup {
    let total = |at: usize| series.iter().filter_map(|part| part.counts.get(at)).sum::<i64>();
    let most = (0..labels.len()).map(total).max().unwrap_or_default().max(1);
    let width = 1000 / labels.len().max(1);
    html! {
        figure {
            p.key {
                @for part in series {
                    span { svg width="10" height="10" aria-hidden="true" { rect class=(part.class) width="10" height="10" rx="2" {} } (part.name) " " strong { (part.counts.iter().sum::<i64>()) } }
                }
            }
            svg.chart viewBox="0 0 1000 120" preserveAspectRatio="none" height="120" role="img" aria-label=(about) {
                line.grid x1="0" x2="1000" y1="119.5" y2="119.5" {}
                @for (at, label) in labels.iter().enumerate() {
                    g {
                        title { (label.text) ": " (total(at)) }
                        rect x=(at * width) y="0" width=(width) height="120" fill="transparent" {}
                        (stack(at, width, most, series))
                    }
                }
            }
            (axis(labels))
            (numbers(labels, &series.iter().map(|part| {
                let counts = part.counts.iter().map(|count| if *count > 0 { count.to_string() } else { String::new() });
                (part.name, counts.collect())
            }).collect::<Vec<_>>()))
        }
    }
}

/// The same as a table, for whoever reads rather than sees: the moments at which there is something.
fn numbers(labels: &[Label], columns: &[(&str, Vec<String>)]) -> Markup {
    let has = |at: usize| columns.iter().any(|(_, cells)| cells.get(at).is_some_and(|cell| !cell.is_empty()));
    html! {
        details.numbers {
            summary { "As a table" }
            table {
                thead { tr { th scope="col" { "When" } @for (name, _) in columns { th.num scope="col" { (name) } } } }
                tbody { @for (at, label) in labels.iter().enumerate().filter(|(at, _)| has(*at)) {
                    tr { td.fit { (label.shown()) } @for (_, cells) in columns { td.num { (cells.get(at).map_or("", String::as_str)) } } }
                } }
            }
        }
    }
}

/// Percentiles over time: a bar up to the second value, and in it one up to the first.
pub fn percentiles(
    about: &str,
    names: [&str; 2],
    labels: &[Label],
    values: &[Option<[i64; 2]>],
    shown: &dyn Fn(i64) -> String,
) -> Markup {
    let most = values.iter().flatten().map(|[_, upper]| *upper).max().unwrap_or_default().max(1);
    let width = 1000 / labels.len().max(1);
    let height = |value: i64| (value.saturating_mul(112) / most).max(2);
    let column = |at: usize| -> Vec<String> {
        values
            .iter()
            .map(|both| both.and_then(|both| both.get(at).copied()).map(shown).unwrap_or_default())
            .collect()
    };
    html! {
        figure {
            p.key {
                @for (name, class) in names.iter().zip(["f-accent o6", "f-accent o3"]) {
                    span { svg width="10" height="10" aria-hidden="true" { rect class=(class) width="10" height="10" rx="2" {} } (name) }
                }
                span { "highest " strong { (shown(most)) } }
            }
            svg.chart viewBox="0 0 1000 120" preserveAspectRatio="none" height="120" role="img" aria-label=(about) {
                line.grid x1="0" x2="1000" y1="119.5" y2="119.5" {}
                @for (at, (label, both)) in labels.iter().zip(values).enumerate() {
                    @if let Some([lower, upper]) = both {
                        g {
                            title { (label.text) ": " (names[0]) " " (shown(*lower)) ", " (names[1]) " " (shown(*upper)) }
                            rect x=(at * width) y="0" width=(width) height="120" fill="transparent" {}
                            rect.f-accent.o3 x=(at * width + width / 8) y=(119 - height(*upper)) width=(width - width / 4) height=(height(*upper)) {}
                            rect.f-accent.o6 x=(at * width + width / 8) y=(119 - height(*lower)) width=(width - width / 4) height=(height(*lower)) {}
                        }
                    }
                }
            }
            (axis(labels))
            (numbers(labels, &[(names[0], column(0)), (names[1], column(1))]))
        }
    }
}

fn stack(at: usize, width: usize, most: i64, series: &[Series]) -> Markup {
    let mut top = 119;
    let parts = series
        .iter()
        .filter_map(|part| Some((part, part.counts.get(at).copied().filter(|count| *count > 0)?)));
    let parts = parts.map(|(part, count)| {
        let height = (count * 112 / most).max(2);
        top -= height;
        (part, top, height)
    });
    html! {
        @for (part, y, height) in parts {
            rect class=(part.class) x=(at * width + width / 8) y=(y) width=(width - width / 4) height=(height) {}
        }
    }
}

/// So many bars have each their name below them; of more, the first, the middle and the last have one.
const NAMED_MAX: usize = 8;

/// The names below the bars.
fn axis(labels: &[Label]) -> Markup {
    let (middle, last) = (labels.len() / 2, labels.len().saturating_sub(1));
    let each = labels.len() <= NAMED_MAX;
    let named = labels.iter().enumerate().filter(|(at, _)| each || [0, middle, last].contains(at));
    html! {
        p.marks.each[each] aria-hidden="true" { @for (_, label) in named { span { (label.shown()) } } }
    }
}

/// Bars of one kind, each with its value as `shown` writes it.
pub fn plain_bars(about: &str, labels: &[Label], values: &[i64], shown: &dyn Fn(i64) -> String) -> Markup {
    let most = values.iter().copied().max().unwrap_or_default().max(1);
    let width = 1000 / labels.len().max(1);
    html! {
        figure {
            p.key { span { (about) } }
            svg.chart viewBox="0 0 1000 120" preserveAspectRatio="none" height="120" role="img" aria-label=(about) {
                line.grid x1="0" x2="1000" y1="119.5" y2="119.5" {}
                @for (at, (label, value)) in labels.iter().zip(values).enumerate() {
                    g {
                        title { (label.text) ": " (shown(*value)) }
                        rect x=(at * width) y="0" width=(width) height="120" fill="transparent" {}
                        @if *value > 0 {
                            @let height = (i128::from(*value) * 112 / i128::from(most)).max(2);
                            rect.f-accent.o6 x=(at * width + width / 8) y=(119 - height) width=(width - width / 4) height=(height) {}
                        }
                    }
                }
            }
            (axis(labels))
            (numbers(labels, &[("Amount", values.iter().map(|value| if *value > 0 { shown(*value) } else { String::new() }).collect())]))
        }
    }
}
