//! The analysis of a call by a model.
use sidetone_engine::conversation::Sentiment;
use sidetone_engine::conversation::transcript::{TranscriptRole, TranscriptRow};
use sidetone_engine::models::{Analysis, AnalysisTurn, Analyst};

use crate::support::{Service, wait};

#[test]
fn a_model_analyzes_a_call() {
    let service = Service::new();
    let transcript = [TranscriptRow::new(0, TranscriptRole::User, "Hello?".into(), 0, 0)];
    let analysis = |model: &str, transcript: &[TranscriptRow]| {
        let analyst = Analyst::new(&service.services.config().catalog, model).unwrap();
        wait(analyst.analyse(service.services.ports(), &AnalysisTurn { transcript }, i64::MAX.into()))
            .unwrap()
            .reply
    };
    let told = Analysis { summary: "They asked and were told.".into(), sentiment: Sentiment::Positive };
    assert_eq!(analysis("fake/analyst", &transcript), told);
    assert_eq!(analysis("builtin/rules", &transcript).sentiment, Sentiment::Neutral);
    assert_eq!(analysis("fake/analyst", &[]).sentiment, Sentiment::Unknown);
    assert_eq!(service.asked().len(), 1, "no request for an empty transcript");
}
