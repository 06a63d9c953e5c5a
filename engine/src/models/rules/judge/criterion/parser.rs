//! The parser of criteria.
use super::{Act, Clause, Criterion, Formula, Join, Kind, Part, Unknown, Verb, Want, Who, is_link, is_vague};
use crate::models::rules::judge::vocabulary::is_one_of;

const CLAUSES_MAX: usize = 12;

pub(super) struct Parser {
    parts: Vec<Part>,
    at: usize,
    /// "In this order" was read.
    ordered: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Link {
    And,
    But,
    Or,
    Before,
    After,
    Then,
}

/// A verb with what may follow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Plain(Verb),
    /// Only with quotation marks.
    Use,
    Ask,
    Request,
    /// Only of tools.
    Return,
    Formula(Formula),
}

impl Parser {
    pub(super) fn new(parts: Vec<Part>) -> Self {
        Self { parts, at: 0, ordered: false }
    }

    pub(super) fn criterion(mut self) -> Result<Criterion, Unknown> {
        let first_mark = self.takes(&["first"]);
        self.take_sign(&[',']);
        if matches!(self.parts.first(), Some(Part::Quote(_))) {
            self.passive()?;
        }
        let (mut clause, mut action) = self.clause(None, None)?;
        let mut clauses = vec![clause.clone()];
        let mut links = Vec::new();
        while self.at < self.parts.len() {
            if self.order_words() && self.at == self.parts.len() {
                break;
            }
            let link = self.link()?;
            let before_clause = self.at;
            let previous = Some((clause.clone(), action));
            (clause, action) = self.clause(previous, Some(link))?;
            if self.at == before_clause || clauses.len() >= CLAUSES_MAX {
                return Err(self.unknown());
            }
            clauses.push(clause.clone());
            links.push(link);
        }
        let is = |of: &[Link]| links.iter().all(|link| of.contains(link));
        let has = |link: Link| links.contains(&link);
        let negated = clauses.iter().filter(|clause| clause.negated).count();
        let join = if self.ordered || has(Link::Then) {
            if links.is_empty()
                || negated > 0
                || !is(&[Link::Then, Link::And])
                || !self.ordered && has(Link::And) && !first_mark && links.len() > 2
            {
                return Err(Unknown::Shape);
            }
            Join::InOrder
        } else if first_mark {
            return Err(Unknown::Word("first".to_owned()));
        } else if is(&[Link::And, Link::But]) {
            Join::All
        } else if is(&[Link::Or]) {
            // Never one or the other: neither.
            match negated {
                0 => Join::Any,
                all if all == clauses.len() => Join::All,
                _ => return Err(Unknown::Shape),
            }
        } else if matches!(links.as_slice(), [Link::Before | Link::After]) && negated == 0 {
            if has(Link::After) {
                clauses.reverse();
            }
            Join::Before
        } else {
            return Err(Unknown::Shape);
        };
        Ok(Criterion { clauses, join })
    }

    /// Turns `"text" is said by the assistant` around.
    fn passive(&mut self) -> Result<(), Unknown> {
        if self.parts.len() == 1 {
            return Ok(());
        }
        let mut rest = Self::new(self.parts.split_off(1));
        if !rest.takes(&["is", "was"]) {
            return Err(rest.unknown());
        }
        let negated = rest.takes(&["never", "not"]);
        if !rest.takes(&["said", "mentioned"]) {
            return Err(rest.unknown());
        }
        let who = if rest.takes(&["by"]) { rest.subject()?.map(|subject| subject.0) } else { None };
        if rest.at < rest.parts.len() {
            return Err(rest.unknown());
        }
        let word = |word: &str| Part::Word(word.to_owned());
        let mut parts = match who {
            Some(Some(Who::Assistant)) => vec![word("assistant")],
            Some(Some(Who::User)) => vec![word("caller")],
            _ => Vec::new(),
        };
        parts.extend(negated.then(|| word("never")));
        parts.push(word("says"));
        parts.append(&mut self.parts);
        self.parts = parts;
        Ok(())
    }

    fn unknown(&self) -> Unknown {
        match self.parts.get(self.at) {
            Some(Part::Word(word)) => Unknown::Word(word.clone()),
            Some(Part::Sign(sign)) => Unknown::Word(sign.to_string()),
            _ => Unknown::Shape,
        }
    }

    fn word(&self, ahead: usize) -> &str {
        match self.parts.get(self.at + ahead) {
            Some(Part::Word(word)) => word,
            _ => "",
        }
    }

    fn takes(&mut self, words: &[&str]) -> bool {
        let found = words.contains(&self.word(0));
        self.at += usize::from(found);
        found
    }

    /// Takes all of these words, or none.
    fn takes_all(&mut self, words: &[&str]) -> bool {
        let found = words.iter().enumerate().all(|(ahead, word)| self.word(ahead) == *word);
        self.at += if found { words.len() } else { 0 };
        found
    }

    fn take_sign(&mut self, signs: &[char]) -> bool {
        let found = matches!(self.parts.get(self.at), Some(Part::Sign(sign)) if signs.contains(sign));
        self.at += usize::from(found);
        found
    }

    fn order_words(&mut self) -> bool {
        let start = self.at;
        self.take_sign(&[',']);
        let found = [
            &["in", "this", "order"][..],
            &["in", "that", "order"],
            &["in", "the", "order"],
            &["in", "order"],
        ]
        .iter()
        .any(|words| self.takes_all(words));
        if found {
            self.ordered = true;
            self.take_sign(&[':']);
        } else {
            self.at = start;
        }
        found
    }

    fn link(&mut self) -> Result<Link, Unknown> {
        let comma = self.take_sign(&[',', ';', '.', '\n']);
        let and = self.takes(&["and"]);
        let link = match self.word(0) {
            "then" => Link::Then,
            "but" if !and => Link::But,
            "or" if !and => Link::Or,
            "before" if !and => Link::Before,
            "after" if !and => Link::After,
            "without" if !and => return Ok(Link::But),
            _ if comma || and => return Ok(if self.ordered { Link::Then } else { Link::And }),
            _ => return Err(self.unknown()),
        };
        self.at += 1;
        Ok(link)
    }

    /// Who speaks, and whether it is nobody. The inner `None` is the one before.
    fn subject(&mut self) -> Result<Option<(Option<Who>, bool)>, Unknown> {
        let start = self.at;
        self.takes(&["the", "our", "this"]);
        let word = self.word(0).to_owned();
        self.at += 1;
        Ok(Some(match word.as_str() {
            "assistant" | "agent" | "bot" => (Some(Who::Assistant), false),
            "caller" | "user" | "customer" => (Some(Who::User), false),
            "tool" => {
                self.takes(&["result", "response", "answer", "output"]);
                (Some(Who::Tool), false)
            }
            "it" | "he" | "she" | "they" => (None, false),
            "nobody" => (Some(Who::Anybody), true),
            "somebody" | "someone" | "anybody" | "anyone" => (Some(Who::Anybody), false),
            _ => {
                self.at = start;
                return Ok(None);
            }
        }))
    }

    fn clause(
        &mut self,
        previous: Option<(Clause, Action)>,
        link: Option<Link>,
    ) -> Result<(Clause, Action), Unknown> {
        let subject = self.subject()?;
        let (mut who, nobody) = subject.unwrap_or_default();
        if who.is_none() {
            who = previous.as_ref().and_then(|(clause, _)| clause.who);
        }
        let modal = self.takes(&["should", "must", "shall", "will"]);
        let mut negated = self.negation(modal)?;
        let without = link == Some(Link::But) && self.takes(&["without"]);
        negated |= without;
        if nobody && negated {
            return Err(Unknown::Shape);
        }
        negated |= nobody;
        let action = self.action();
        let was_negated = previous.as_ref().is_some_and(|(clause, _)| clause.negated);
        // "Never a, or never b" leaves open whether one is enough; "never a without b" is a condition.
        if was_negated && negated && (link == Some(Link::Or) || without) {
            return Err(Unknown::Shape);
        }
        if was_negated && !negated {
            match link {
                // "Must not say a or must say b" are two.
                Some(Link::Or) if subject.is_none() && !modal => negated = true,
                // "Never a and b" may mean both or each.
                Some(Link::And) if subject.is_none() => return Err(Unknown::Shape),
                _ => {}
            }
        }
        let is_order = matches!(link, Some(Link::Before | Link::After));
        let action = match (action, &previous) {
            (Some(action), _) => action,
            (None, Some((_, action))) if subject.is_none() || modal => {
                let is_quote = matches!(self.parts.get(self.at), Some(Part::Quote(_)));
                // "Before noon" is a part of what was said, and no order.
                if is_order && !is_quote {
                    return Err(self.unknown());
                }
                *action
            }
            (None, None) if subject.is_none() && matches!(self.parts.get(self.at), Some(Part::Quote(_))) => {
                Action::Plain(Verb::Say)
            }
            _ => return Err(self.unknown()),
        };
        if (action == Action::Return) != (who == Some(Who::Tool)) {
            return Err(self.unknown());
        }
        let act = self.act(action)?;
        Ok((Clause { who, negated, act }, action))
    }

    fn negation(&mut self, modal: bool) -> Result<bool, Unknown> {
        if self.takes(&["never", "doesn't", "don't", "didn't", "won't", "mustn't", "shouldn't", "avoids"]) {
            return Ok(true);
        }
        if self.takes(&["does", "do", "did"]) || modal || self.word(0) == "not" {
            let negated = self.takes(&["not", "never"]);
            return if negated || modal { Ok(negated) } else { Err(self.unknown()) };
        }
        Ok(false)
    }

    fn action(&mut self) -> Option<Action> {
        const ACTIONS: [(&str, Action); 10] = [
            ("say says said saying", Action::Plain(Verb::Say)),
            ("use uses used using", Action::Use),
            ("mention mentions mentioned mentioning", Action::Plain(Verb::Mention)),
            (
                "give gives gave giving state states stated stating name names naming tell tells told telling provide \
                 provides provided providing",
                Action::Plain(Verb::Give),
            ),
            (
                "confirm confirms confirmed confirming repeat repeats repeated repeating offer offers offered offering \
                 explain explains suggest suggests promise promises",
                Action::Plain(Verb::Confirm),
            ),
            ("ask asks asked asking", Action::Ask),
            ("request requests requested requesting", Action::Request),
            ("return returns returned contain contains include includes", Action::Return),
            ("thank thanks thanking", Action::Formula(Formula::Thanks)),
            ("greet greets greeting", Action::Formula(Formula::Hello)),
        ];
        let word = self.word(0);
        let action = match ACTIONS.iter().find(|(words, _)| is_one_of(word, words)) {
            Some((_, action)) => *action,
            None if is_one_of(word, "apologise apologises apologising apologize apologizes apologizing") => {
                Action::Formula(Formula::Sorry)
            }
            None => return None,
        };
        self.at += 1;
        Some(action)
    }

    /// The other side, whom something is told.
    fn addressee(&mut self) {
        let start = self.at;
        if self.takes(&["him", "her", "them"]) {
            return;
        }
        self.takes(&["the"]);
        if !self.takes(&["caller", "user", "customer", "assistant"]) {
            self.at = start;
        }
    }

    /// What may stand at the end without a meaning of its own.
    fn tail(&mut self) {
        if self.takes(&["to"]) {
            self.addressee();
        }
        let _ = self.takes_all(&["at", "least", "once"]);
    }

    fn act(&mut self, action: Action) -> Result<Act, Unknown> {
        if let Action::Formula(formula) = action {
            self.takes(&["to"]);
            self.addressee();
            return Ok(Act::Formula { formula, by_word: false });
        }
        self.addressee();
        self.order_words();
        let verb = match action {
            Action::Ask | Action::Request => return self.ask(action == Action::Ask),
            Action::Plain(verb) => verb,
            _ => Verb::Say,
        };
        let that = verb != Verb::Mention && self.takes(&["that"]);
        self.take_sign(&[':']);
        let start = self.at;
        let determiner = if self.takes(&["a", "an", "any"]) {
            Determiner::Any
        } else if self.takes(&["the", "his", "her", "its", "their"]) {
            Determiner::The
        } else {
            Determiner::None
        };
        let mut before = Vec::new();
        loop {
            match self.parts.get(self.at) {
                Some(Part::Quote(quoted)) => {
                    let quote = quoted.clone();
                    let plain = |want: &Want| {
                        want.word()
                            .is_some_and(|word| is_one_of(word, "word words phrase sentence text exact"))
                    };
                    let labelled = !before.iter().all(plain);
                    self.at += 1;
                    self.tail();
                    // "Words like …" are more than these.
                    const MORE: &str = "like similar such other another than synonym synonyms opposite";
                    if before.iter().any(|want| want.word().is_some_and(|word| is_one_of(word, MORE))) {
                        return Err(Unknown::Shape);
                    }
                    // Who says these words has not given or promised them: "we cannot offer a refund".
                    let verb = if that { Verb::SayThat } else { verb };
                    return match verb {
                        Verb::Confirm => Err(Unknown::Shape),
                        Verb::Give | Verb::SayThat if !labelled => {
                            Ok(Act::Words { verb, wants: quote.wants })
                        }
                        _ => Ok(Act::Quote { quote, labelled }),
                    };
                }
                Some(Part::Value(value)) => before.push(Want::Value(value.clone())),
                Some(Part::Word(word)) if self.at > start && is_link(word) => break,
                Some(Part::Word(word)) if word == "to" && is_one_of(self.word(1), "the him her them") => {
                    break;
                }
                Some(Part::Word(word)) if word == "in" && matches!(self.word(1), "this" | "order") => break,
                Some(Part::Word(word)) => {
                    if is_vague(word) || word.ends_with("ly") && !that {
                        return Err(Unknown::Word(word.clone()));
                    }
                    before.push(Want::Word(word.clone()));
                }
                // Between the parts of a word, as in "check-in".
                Some(Part::Sign('-')) => {}
                Some(Part::Sign(',' | ';' | '.' | '\n')) | None => break,
                Some(Part::Sign(_)) => return Err(self.unknown()),
            }
            self.at += 1;
        }
        self.tail();
        if before.is_empty() || action == Action::Use {
            return Err(self.unknown());
        }
        // "… or similar": these are no words that should be said.
        const OPEN: &str = "alike another comparable equivalent like other others same similar such synonym synonyms that phrase \
            phrases thing things variant variants word words";
        if !that && before.iter().all(|want| want.word().is_some_and(|word| is_one_of(word, OPEN))) {
            return Ok(Act::Open);
        }
        self.words(if that { Verb::SayThat } else { verb }, determiner, before)
    }

    /// What words without quotation marks claim.
    fn words(&self, verb: Verb, determiner: Determiner, wants: Vec<Want>) -> Result<Act, Unknown> {
        let has_value = wants.iter().any(|want| want.value().is_some());
        if has_value {
            return Ok(Act::Words { verb, wants });
        }
        let words: Vec<&str> = wants.iter().filter_map(Want::word).collect();
        let formula = match words.as_slice() {
            ["sorry"] => Some(Formula::Sorry),
            ["hello" | "hi"] => Some(Formula::Hello),
            ["goodbye" | "bye"] | ["good", "bye"] => Some(Formula::Goodbye),
            ["thanks"] | ["thank", "you"] => Some(Formula::Thanks),
            _ => None,
        };
        if let Some(formula) = formula.filter(|_| verb == Verb::Say && determiner == Determiner::None) {
            return Ok(Act::Formula { formula, by_word: true });
        }
        let kind = match words.as_slice() {
            ["price"] => Some(Kind::Price),
            ["phone" | "telephone", "number"] => Some(Kind::Telephone),
            ["email"] | ["email", "address"] | ["e", "mail", "address"] => Some(Kind::Email),
            ["date"] => Some(Kind::Date),
            ["time"] => Some(Kind::Time),
            ["percentage"] => Some(Kind::Percentage),
            _ => None,
        };
        if let Some(kind) = kind.filter(|_| determiner == Determiner::Any && verb != Verb::Confirm) {
            return Ok(Act::Kind(kind));
        }
        let is_literal = match verb {
            Verb::Say => determiner == Determiner::None,
            Verb::SayThat | Verb::Mention => true,
            Verb::Give | Verb::Confirm => false,
        };
        if is_literal { Ok(Act::Words { verb, wants }) } else { Err(Unknown::Word(words.join(" "))) }
    }

    fn ask(&mut self, needs_for: bool) -> Result<Act, Unknown> {
        if let Some(Part::Quote(quoted)) = self.parts.get(self.at) {
            let quote = quoted.clone();
            self.at += 1;
            return Ok(Act::Quote { quote, labelled: false });
        }
        if needs_for && !self.takes(&["for"]) {
            return Err(self.unknown());
        }
        let mut wants = Vec::new();
        while let Some(part) = self.parts.get(self.at) {
            match part {
                Part::Word(word) if is_link(word) => break,
                Part::Word(word) if is_vague(word) => return Err(self.unknown()),
                Part::Word(word) if wants.is_empty() && is_one_of(word, "a an the his her their any") => {}
                Part::Word(word)
                    if wants.is_empty() && matches!(word.as_str(), "caller's" | "user's" | "customer's") => {}
                Part::Word(word) => wants.push(Want::Word(word.clone())),
                Part::Sign('-') => {}
                Part::Sign(',' | ';' | '.' | '\n') => break,
                _ => return Err(self.unknown()),
            }
            self.at += 1;
        }
        if wants.is_empty() { Err(self.unknown()) } else { Ok(Act::Ask(wants)) }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Determiner {
    None,
    Any,
    The,
}
