//! What instructions make the caller say.
use super::*;

/// Instructions, and the lines of a caller that follows them; each in one of its ways, over all seeds.
const TABLE: &[(&str, &[&str])] = &[
    (
        "Ask for the opening hours.",
        &["What are the opening hours?", "Could you tell me the opening hours, please?"],
    ),
    ("Ask for their opening hours.", &["What are your opening hours?"]),
    ("Ask for the price of a room.", &["What is the price of a room?"]),
    ("Ask for a refund.", &["Could I have a refund, please?", "I'd like a refund, please."]),
    ("Ask for the manager.", &["Could I speak to the manager, please?"]),
    ("Ask to speak to a supervisor.", &["I'd like to speak to a supervisor, please."]),
    (
        "Ask whether they deliver on Sundays.",
        &["Do you deliver on Sundays?", "Could you tell me whether you deliver on Sundays, please?"],
    ),
    ("Ask if they are open on Monday.", &["Are you open on Monday?"]),
    ("Ask whether there is parking.", &["Is there parking?"]),
    (
        "Ask whether you can park there.",
        &["Can I park there?", "Could you tell me whether I can park there, please?"],
    ),
    ("Ask whether breakfast is included", &["Could you tell me whether breakfast is included, please?"]),
    ("Ask what time they open on Saturday.", &["What time do you open on Saturday?"]),
    ("Ask when they can deliver your sofa.", &["When can you deliver my sofa?"]),
    ("Ask how much a room costs.", &["Could you tell me how much a room costs, please?"]),
    (
        "Ask about parking.",
        &["Could you tell me about parking, please?", "What can you tell me about parking?"],
    ),
    ("Ask them to call you back.", &["Could you call me back, please?"]),
    ("Ask the assistant whether it is raining.", &["Is it raining?"]),
    ("Find out whether they sell bread.", &["Do you sell bread?"]),
    ("You want to know what your balance is.", &["Could you tell me what my balance is, please?"]),
    (
        "Book a table for four.",
        &["I'd like to book a table for four, please.", "I want to book a table for four, please."],
    ),
    ("Order two pizzas.", &["I'd like to order two pizzas, please."]),
    ("Cancel the booking BD-17.", &["I'd like to cancel the booking BD-17, please."]),
    ("You should cancel your reservation.", &["I'd like to cancel my reservation, please."]),
    ("You want a table at 7 pm.", &["I'd like a table at 7 pm, please."]),
    ("You would like to change your address.", &["I'd like to change my address, please."]),
    ("You want them to call you back.", &["Could you call me back, please?"]),
    ("You need a plumber.", &["I need a plumber."]),
    ("You call the restaurant to book a table.", &["I'd like to book a table, please."]),
    ("You are calling about your invoice.", &["I'm calling about my invoice."]),
    ("Speak to the doctor.", &["I'd like to speak to the doctor, please."]),
    ("Say that the soup was cold.", &["The soup was cold."]),
    ("Say that you are allergic to nuts.", &["I am allergic to nuts."]),
    ("Tell them that they forgot your order.", &["You forgot my order."]),
    ("Tell the agent your car broke down.", &["My car broke down."]),
    ("Tell them to hurry up.", &["Could you hurry up, please?", "Please hurry up."]),
    ("Complain that your pizza is late.", &["My pizza is late."]),
    ("Complain about the noise.", &["I'd like to complain about the noise."]),
    ("Mention that you were there yesterday.", &["I was there yesterday."]),
    ("Say that the pizzas were cold and they were late.", &["The pizzas were cold and they were late."]),
    ("Say that the assistant has promised you a refund.", &["You have promised me a refund."]),
    ("Say hello.", &["Hello!"]),
    ("Thank them for the quick delivery.", &["Thank you for the quick delivery."]),
    ("Tell me more about elephants.", &["Tell me more about elephants."]),
    ("Where is order A-17?", &["Where is order A-17?"]),
    ("Your internet has been slow for a week.", &["My internet has been slow for a week."]),
    ("The lamp in your kitchen is broken.", &["The lamp in my kitchen is broken."]),
    ("You forgot your password.", &["I forgot my password."]),
    ("Be kind.", &["Hello."]),
];

#[test]
fn an_instruction_is_followed() {
    let mut wrong = Vec::new();
    for (scenario, expected) in TABLE {
        let said: Vec<Vec<String>> = (0..8).map(|seed| lines("A calm person.", scenario, seed)).collect();
        for wanted in *expected {
            if !said.iter().any(|lines| lines == &[*wanted]) {
                wrong.push(format!("{scenario}: not {wanted:?} but {:?}", said[0]));
            }
        }
        if said.iter().any(|lines| lines.len() != 1) {
            wrong.push(format!("{scenario}: not one line: {said:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Scenarios of several instructions, and a part of each line.
const SEVERAL: &[(&str, &[&str])] = &[
    ("Ask for the price, then book a table.", &["price", "book a table, please."]),
    (
        "First, ask whether they deliver. Then order a pizza and say that you pay in cash.",
        &["you deliver", "order a pizza", "I pay in cash."],
    ),
    ("You are in a hurry. Ask for the price. You speak slowly. The assistant should answer it.", &["price"]),
    ("Ask for the price. Do not ask about parking. Never say sorry.", &["price"]),
    ("Ask about the menu and whether they deliver.", &["menu", "you deliver"]),
    ("You are Anna Berg and want to book a table.", &["book a table"]),
    ("Your name is Anna Berg, and you want to order flowers.", &["order flowers"]),
    ("Tell them your name and ask for the price.", &["", "price"]),
    ("Ask for the price. If they offer Tuesday, accept. Hang up.", &["price"]),
    ("When you get through, ask for the price. Once you know it, book a room.", &["price", "book a room"]),
    ("In a friendly voice, say hello. Before hanging up, ask about parking.", &["Hello!", "parking"]),
    (
        "When do you open? If I come, is there parking?",
        &["When do you open?", "If I come, is there parking?"],
    ),
    ("If you are put on hold, wait. Ask for the price.", &["price"]),
];

#[test]
fn several_instructions_are_lines_in_order() {
    for (scenario, expected) in SEVERAL {
        let said = lines("You are Anna Berg. Be polite.", scenario, 2);
        assert_eq!(said.len(), expected.len(), "{scenario}: {said:?}");
        for (line, part) in said.iter().zip(*expected) {
            assert!(line.contains(part), "{scenario}: {said:?}");
        }
    }
    assert!(lines("You are Anna Berg.", "Tell them your name.", 2)[0].contains("Anna Berg"));
}
