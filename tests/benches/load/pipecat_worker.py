"""One Pipecat worker that answers calls over Twilio's media streams, for the load benchmark (`load.rs`).

`pipecat_worker.py PROVIDERS_URL` serves on a free port of this machine and prints it. Transcriber, model and voice are
OpenAI's protocols at that URL. The pipeline is that of Pipecat's own telephone template, with what costs least where there is
a choice: 8 kHz inside, no metrics, no log, the end of a turn by silence rather than by the model that judges it.
"""

import socket
import sys

import uvicorn
from fastapi import FastAPI, WebSocket
from loguru import logger
from pipecat.audio.vad.silero import SileroVADAnalyzer
from pipecat.audio.vad.vad_analyzer import VADParams
from pipecat.frames.frames import TTSSpeakFrame
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineParams, PipelineWorker
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.aggregators.llm_response_universal import LLMContextAggregatorPair, LLMUserAggregatorParams
from pipecat.runner.utils import parse_telephony_websocket
from pipecat.serializers.twilio import TwilioFrameSerializer
from pipecat.services.openai.llm import OpenAILLMService
from pipecat.services.openai.stt import OpenAISTTService
from pipecat.services.openai.tts import OpenAITTSService
from pipecat.transports.websocket.fastapi import FastAPIWebsocketParams, FastAPIWebsocketTransport
from pipecat.turns.user_start import VADUserTurnStartStrategy
from pipecat.turns.user_stop import SpeechTimeoutUserTurnStopStrategy
from pipecat.turns.user_turn_strategies import UserTurnStrategies
from pipecat.workers.runner import WorkerRunner

RATE_HZ = 8_000
# A turn of a caller is over after so much silence, as in the assistants of the benchmark.
END_OF_TURN_S = 0.1

providers = {"base_url": sys.argv[1], "api_key": "key"}
app = FastAPI()


@app.websocket("/media")
async def media(websocket: WebSocket):
    await websocket.accept()
    _, call = await parse_telephony_websocket(websocket)
    # The number of the call ends its id.
    term = f"call {int(call['call_id'][-6:]):04}"
    transport = FastAPIWebsocketTransport(
        websocket=websocket,
        params=FastAPIWebsocketParams(
            audio_in_enabled=True,
            audio_out_enabled=True,
            serializer=TwilioFrameSerializer(
                stream_sid=call["stream_id"],
                call_sid=call["call_id"],
                params=TwilioFrameSerializer.InputParams(auto_hang_up=False),
            ),
        ),
    )
    stt = OpenAISTTService(settings=OpenAISTTService.Settings(model="scribe", prompt=term), **providers)
    llm = OpenAILLMService(settings=OpenAILLMService.Settings(model="echo"), **providers)
    tts = OpenAITTSService(settings=OpenAITTSService.Settings(model="speech", voice="alloy"), **providers)
    stop = SpeechTimeoutUserTurnStopStrategy(user_speech_timeout=END_OF_TURN_S)
    aggregators = LLMContextAggregatorPair(
        LLMContext([{"role": "system", "content": "Be kind."}]),
        user_params=LLMUserAggregatorParams(
            vad_analyzer=SileroVADAnalyzer(params=VADParams(stop_secs=END_OF_TURN_S)),
            user_turn_strategies=UserTurnStrategies(start=[VADUserTurnStartStrategy()], stop=[stop]),
        ),
    )
    parts = [
        transport.input(),
        stt,
        aggregators.user(),
        llm,
        tts,
        transport.output(),
        aggregators.assistant(),
    ]
    worker = PipelineWorker(
        Pipeline(parts),
        params=PipelineParams(audio_in_sample_rate=RATE_HZ, audio_out_sample_rate=RATE_HZ),
        enable_rtvi=False,
    )

    @transport.event_handler("on_client_connected")
    async def connected(_transport, _client):
        await worker.queue_frames([TTSSpeakFrame("Hello.")])

    @transport.event_handler("on_client_disconnected")
    async def disconnected(_transport, _client):
        await worker.cancel()

    runner = WorkerRunner(handle_sigint=False)
    await runner.add_workers(worker)
    await runner.run()


if __name__ == "__main__":
    logger.remove()
    logger.add(sys.stderr, level="ERROR")
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_level="error", access_log=False)
    print(f"listening on 127.0.0.1:{listener.getsockname()[1]}", flush=True)
    uvicorn.Server(config).run(sockets=[listener])
