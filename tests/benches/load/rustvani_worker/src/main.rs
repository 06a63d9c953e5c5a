//! A worker of rustvani that answers calls over Twilio's media streams, for the load benchmark (`load.rs`).
//!
//! `rustvani-worker PROVIDERS_URL` serves on a free port of this machine and prints it. Transcriber and voice are Deepgram's
//! sockets, the model is OpenAI's protocol. The pipeline is that of rustvani's own examples, with what costs least where there is
//! a choice: the end of a turn by silence rather than by the model that judges it, and a transcriber without its noise filter.
use std::sync::Arc;

use rustvani::axum::Router;
use rustvani::axum::extract::State;
use rustvani::axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use rustvani::axum::response::IntoResponse;
use rustvani::axum::routing::get;
use rustvani::processors::llm_assistant_aggregator::LLMAssistantAggregator;
use rustvani::processors::llm_user_aggregator::LLMUserAggregator;
use rustvani::serializers::{TwilioFrameSerializer, TwilioInputParams, TwilioStart};
use rustvani::services::{
    DeepgramSttConfig, DeepgramSttHandler, DeepgramTtsConfig, DeepgramTtsHandler, OpenAILLMConfig,
    OpenAILLMHandler,
};
use rustvani::transport::{TransportParams, WebSocketParams, WebSocketTransport};
use rustvani::{PipelineParams, PipelineTask, SileroVadNative, VadParams, shared_context, system_clock};

/// A turn of a caller is over after so much silence, as in the assistants of the benchmark.
const END_OF_TURN_S: f32 = 0.1;

async fn converse(mut socket: WebSocket, providers: String) -> Result<(), String> {
    let start = loop {
        match socket.recv().await {
            Some(Ok(Message::Text(text))) => {
                if let Some(start) = TwilioStart::parse(&text) {
                    break start;
                }
            }
            Some(Ok(_)) => {}
            _ => return Err("no start".to_owned()),
        }
    };
    // The number of the call ends its id.
    let call = start.call_sid.clone().unwrap_or_default();
    let call: usize =
        call.get(call.len().saturating_sub(6)..).and_then(|digits| digits.parse().ok()).unwrap_or(0);
    let sockets = providers.replacen("http", "ws", 1);
    let vad = SileroVadNative::new(16_000).map_err(|error| error.to_string())?;
    let params = TransportParams {
        audio_in_enabled: true,
        audio_in_sample_rate: Some(16_000),
        audio_out_enabled: true,
        audio_out_sample_rate: Some(24_000),
        audio_out_10ms_chunks: 2,
        vad_analyzer: Some(Arc::new(vad)),
        vad_params: VadParams {
            confidence: 0.45,
            min_volume: 0.0,
            stop_secs: END_OF_TURN_S,
            ..VadParams::default()
        },
        ..TransportParams::default()
    };
    let transport = WebSocketTransport::new("call", WebSocketParams { transport: params });
    let input = TwilioInputParams { auto_hang_up: false, ..TwilioInputParams::default() };
    let serializer =
        TwilioFrameSerializer::from_start(start, None, input).map_err(|error| error.to_string())?;
    transport.set_serializer(Box::new(serializer));
    let stt = DeepgramSttHandler::new(DeepgramSttConfig {
        api_key: "key".to_owned(),
        base_url: Some(format!("{sockets}/listen/{call}")),
        ..DeepgramSttConfig::default()
    });
    let llm = OpenAILLMHandler::new(OpenAILLMConfig {
        api_key: "key".to_owned(),
        model: "echo".to_owned(),
        base_url: providers.clone(),
        ..OpenAILLMConfig::default()
    });
    let tts = DeepgramTtsHandler::new(DeepgramTtsConfig {
        api_key: "key".to_owned(),
        base_url: sockets.trim_end_matches("/v1").to_owned(),
        ..DeepgramTtsConfig::default()
    })?;
    let context = shared_context(Some("Be kind.".to_owned()));
    let task = PipelineTask::new(
        vec![
            transport.input(),
            stt.into_processor(),
            LLMUserAggregator::new(context.clone()),
            llm.into_processor(),
            LLMAssistantAggregator::new(context),
            tts.into_processor(),
            transport.output(),
        ],
        PipelineParams { allow_interruptions: true, ..PipelineParams::default() },
    );
    let frames = task.push_sender();
    let (ended, ()) = tokio::join!(task.run(system_clock(), None), transport.run_socket(socket, frames));
    ended.map_err(|error| error.to_string())
}

async fn media(upgrade: WebSocketUpgrade, State(providers): State<String>) -> impl IntoResponse {
    upgrade.on_upgrade(async move |socket| {
        if let Err(error) = converse(socket, providers).await {
            eprintln!("ERROR {error}");
        }
    })
}

#[tokio::main]
async fn main() {
    let providers = std::env::args().nth(1).expect("where the providers are");
    let app = Router::new().route("/media", get(media)).with_state(providers);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    println!("listening on {}", listener.local_addr().expect("it is bound"));
    rustvani::axum::serve(listener, app).await.expect("it serves");
}
