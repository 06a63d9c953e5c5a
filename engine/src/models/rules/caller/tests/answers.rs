//! What the caller answers.
use super::*;

/// Persona, scenario, the assistant's words, and a part of the caller's line.
const TABLE: &[(&str, &str, &str, &str)] = &[
    ("Your name is Anna Berg.", "Book a table.", "What is your name?", "Anna Berg"),
    ("You are Anna Berg, a nurse from Oslo.", "Book a table.", "May I have your name, please?", "Anna Berg"),
    ("You are Anna Berg.", "Book a table.", "Who am I speaking to?", "Anna Berg"),
    ("You are Anna Berg.", "Book a table.", "What's your last name?", "Berg."),
    ("You are Anna Berg.", "Book a table.", "And your first name?", "Anna."),
    ("Anna Berg, 34, lives in Oslo.", "Book a table.", "Under what name?", "Anna Berg"),
    ("Name: Anna Berg", "Book a table.", "Can I get your name?", "Anna Berg"),
    ("", "You are Dr. Anna Berg. Book a table.", "What name shall I put down?", "Anna Berg"),
    ("Your phone number is 555 0100.", "Book a table.", "What's your telephone number?", "555 0100"),
    ("Your number is 555 0100.", "Book a table.", "Can I have your phone number?", "555 0100"),
    ("You are Anna, phone 555 0100.", "Book a table.", "Could I have your number?", "555 0100"),
    ("You can be reached at +49 30 123456.", "Book a table.", "How can we reach you?", "+49 30 123456"),
    (
        "Your e-mail is anna@berg.example.",
        "Book a table.",
        "What is your email address?",
        "anna@berg.example",
    ),
    ("Write to anna@berg.example.", "Book a table.", "And your e-mail?", "anna@berg.example"),
    ("You live in Oslo.", "Book a table.", "Where do you live?", "in Oslo"),
    ("Your address is 5 Park Lane, Oslo.", "Order a pizza.", "What is your address?", "5 Park Lane, Oslo"),
    (
        "You live at 5 Park Lane.",
        "Order a pizza.",
        "Where should we deliver it, and what is your address?",
        "5 Park Lane",
    ),
    ("You were born on 5 May 1980.", "Book a table.", "What's your date of birth?", "5 May 1980"),
    ("You are 34 years old.", "Book a table.", "How old are you?", "34"),
    ("", "Cancel the booking BD-17.", "What is your booking number?", "BD-17"),
    ("", "Your order number is 1234.", "Could you give me your order ID?", "1234"),
    ("Your customer number is C-99.", "Ask for a refund.", "Please tell me your customer number.", "C-99"),
    ("Your favourite colour is blue.", "Order a car.", "What is your favourite colour?", "blue"),
    ("", "You want a table at 7 pm.", "What time would you like to come?", "7 pm"),
    ("", "Book a table on Friday for four.", "For which day would you like it?", "Friday"),
    ("", "Book a table for four on Friday.", "For how many people?", "four"),
    ("", "Your booking is for 4 people.", "How many people will you be?", "4 people"),
    ("", "Order two pizzas.", "How many pizzas would you like?", "wo pizzas"),
    ("", "Book a table for tomorrow at 19:30.", "When would you like to come?", "19:30"),
    (
        "You are Anna Berg. Your phone number is 555 0100.",
        "Book a table.",
        "What is your name and phone number?",
        "555 0100",
    ),
    ("You are Anna Berg.", "Book a table.", "Is your name Anna Berg?", "Yes"),
    ("You are Anna Berg.", "Book a table.", "A table for Anna Berg. Is that correct?", "Yes"),
    ("", "Book a table.", "Would you like me to book the table?", "Yes, please"),
    ("", "Book a table.", "Shall I go ahead?", "Yes, please"),
    ("", "Book a table.", "Would you like a dessert?", "No, thank"),
    ("", "Book a table.", "What is your phone number?", "orry"),
    ("", "Book a table.", "What is your shoe size?", "orry"),
    ("You are a member of the club.", "Book a court.", "Are you a member?", "Yes"),
    ("You do not have a reservation.", "Book a court.", "Do you have a reservation?", "No"),
    ("", "Book a table.", "How can I help you?", "book a table"),
    ("", "Book a table.", "Good evening. How are you?", "fine"),
    ("", "Book a table.", "Hello, are you still there?", "here"),
    ("", "Book a table. If they offer Tuesday, accept.", "I can offer Tuesday.", "Yes"),
    ("", "Book a table. If they offer Tuesday, decline.", "Would Tuesday suit you?", "No, thank"),
    ("", "Book a table. If they offer Tuesday, accept, otherwise decline.", "How about Tuesday?", "Yes"),
    (
        "",
        "Book a table. If they offer Tuesday, accept, otherwise decline.",
        "How about Wednesday?",
        "No, thank",
    ),
    (
        "",
        "Book a table. If they offer Tuesday, accept. Otherwise, decline.",
        "How about Wednesday?",
        "No, thank",
    ),
    (
        "",
        "Book a table. Accept any alternative.",
        "Would Wednesday be possible for you? I can offer Wednesday.",
        "Yes",
    ),
    ("", "Order a pizza. Decline dessert.", "Would you like a dessert?", "No, thank"),
    (
        "",
        "Order a pizza. If asked for a discount code, say SPRING7.",
        "Do you have a discount code?",
        "SPRING7",
    ),
    ("", "Order a pizza. When asked for your PIN, say \"forty two\".", "What is your PIN?", "forty two"),
    (
        "",
        "Order a pizza. If they ask for your number, give 555 0100.",
        "What's your phone number?",
        "555 0100",
    ),
    ("When asked for your name, say Anna Berg.", "Order a pizza.", "What is your name?", "Anna Berg"),
    (
        "",
        "Order a pizza. Say that you pay in cash when they ask how you pay.",
        "How would you like to pay?",
        "I pay in cash",
    ),
    (
        "",
        "Book a room. If there is no room, ask for the manager.",
        "I'm sorry, there is no room left.",
        "speak to the manager",
    ),
    ("", "Book a room. If there is no room, ask for the manager.", "Yes, there is a room.", "book a room"),
    ("", "Book a room. If they say that it costs more than 100, hang up.", "It costs 100 or more.", "oodbye"),
    ("Your name is Anna Berg.", "Order a pizza. Do not give your name.", "What is your name?", "rather"),
    (
        "Your phone number is 555 0100. Never reveal your phone number.",
        "Order a pizza.",
        "What is your phone number?",
        "rather",
    ),
    (
        "Your name is Anna Berg. Do not give your name unless asked.",
        "Order a pizza.",
        "What is your name?",
        "Anna Berg",
    ),
    (
        "Your name is Anna Berg. Do not share personal details.",
        "Order a pizza.",
        "What is your name?",
        "rather",
    ),
    ("Your name is Anna Berg.", "Order a pizza.", "What is your name? I will look you up.", "Anna Berg"),
    ("Your name is Anna Berg.", "Order a pizza.", "What is our name? It is Tony's.", "order a pizza"),
];

#[test]
fn a_question_is_answered_from_what_the_caller_knows() {
    let mut wrong = Vec::new();
    for (persona, scenario, heard, expected) in TABLE {
        for seed in 0..4 {
            let caller = RulesCaller::new(persona, scenario);
            let history = [Message::Assistant { text: (*heard).to_owned() }];
            let reply = caller.reply(&turn(persona, scenario, &history, seed));
            if !reply.text.to_lowercase().contains(&expected.to_lowercase()) {
                wrong.push(format!("{persona} | {scenario} | {heard} | {expected:?}: {}", reply.text));
                break;
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_not_to_be_told_is_never_told() {
    for (persona, secret) in [
        ("Your name is Anna Berg. Do not give your name.", "Berg"),
        ("Your phone number is 555 0100. Don't tell your phone number.", "0100"),
        ("Your order number is A-17. Do not share any personal details.", "A-17"),
    ] {
        let asked = [
            "Who is calling?",
            "What is your name?",
            "What is your phone number?",
            "What is your order number?",
        ];
        for seed in 0..4 {
            let said =
                conversation(persona, "Ask for a refund.", |at| asked[at % asked.len()].to_owned(), seed);
            assert!(said.iter().all(|line| !line.contains(secret)), "{persona}: {said:?}");
        }
    }
}

#[test]
fn quoted_words_that_are_forbidden_or_conditional_are_no_lines() {
    let scenario = "Say \"Hello there.\" Never say \"bargain\". If asked for your size, say \"Size nine.\"";
    assert_eq!(lines("", scenario, 0), ["Hello there."]);
    let scenario = "When they answer, say \"Good. Morning.\" Never say \"A bargain. Really.\" If nobody cares \"so what\".";
    assert_eq!(
        lines("", scenario, 0),
        ["Good. Morning.", "so what"],
        "what is no condition after all is a line"
    );
}
