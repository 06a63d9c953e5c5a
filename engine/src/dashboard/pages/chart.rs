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

/// Bars over time, stacked. `labels` names each bar; `about` says what is seen, to those who do not see it.
pub fn bars(about: &str, labels: &[String], series: &[Series]) -> Markup {
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
                        title { (label) ": " (total(at)) }
                        rect x=(at * width) y="0" width=(width) height="120" fill="transparent" {}
                        (stack(at, width, most, series))
                    }
                }
            }
            p.marks aria-hidden="true" {
                @for label in ends(labels) { span { (label) } }
            }
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

fn ends(labels: &[String]) -> impl Iterator<Item = &String> {
    let (first, middle, last) = (labels.first(), labels.get(labels.len() / 2), labels.last());
    [first, middle, last].into_iter().flatten()
}

/// Bars of one kind, each with its value as `shown` writes it.
pub fn plain_bars(about: &str, labels: &[String], values: &[i64], shown: &dyn Fn(i64) -> String) -> Markup {
    let most = values.iter().copied().max().unwrap_or_default().max(1);
    let width = 1000 / labels.len().max(1);
    html! {
        figure {
            p.key { span { (about) } }
            svg.chart viewBox="0 0 1000 120" preserveAspectRatio="none" height="120" role="img" aria-label=(about) {
                line.grid x1="0" x2="1000" y1="119.5" y2="119.5" {}
                @for (at, (label, value)) in labels.iter().zip(values).enumerate() {
                    g {
                        title { (label) ": " (shown(*value)) }
                        rect x=(at * width) y="0" width=(width) height="120" fill="transparent" {}
                        @if *value > 0 {
                            @let height = (i128::from(*value) * 112 / i128::from(most)).max(2);
                            rect.f-accent.o6 x=(at * width + width / 8) y=(119 - height) width=(width - width / 4) height=(height) {}
                        }
                    }
                }
            }
            p.marks aria-hidden="true" { @for label in ends(labels) { span { (label) } } }
        }
    }
}
