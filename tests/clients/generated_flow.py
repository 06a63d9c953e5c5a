"""The flow of the client that openapi-python-client made."""

import os
import time

from sidetone_client import AuthenticatedClient
from sidetone_client.api.assistants import create_assistant, list_assistants
from sidetone_client.api.simulations import (
    create_simulation,
    create_simulation_persona,
    create_simulation_scenario,
    get_simulation_run,
    start_simulation_run,
)
from sidetone_client.models import (
    CreateAssistantBody,
    CreateSimulationBody,
    CreateSimulationPersonaBody,
    CreateSimulationScenarioBody,
    Error,
    RunMode,
    RunStatus,
    StartSimulationRunBody,
)

client = AuthenticatedClient(base_url=os.environ["SIDETONE_URL"], token=os.environ["SIDETONE_KEY"])


def ok(answer):
    assert answer is not None and not isinstance(answer, Error), answer
    return answer


body = CreateAssistantBody(
    name="Harbour Dental", instructions="You answer the telephone.", first_message="Harbour Dental, hello."
)
assistant = ok(create_assistant.sync(client=client, body=body))
assert assistant.created_at.tzinfo is not None, "times are times"
listed = ok(list_assistants.sync(client=client, limit=20))
assert assistant.id in [one.id for one in listed]

persona = CreateSimulationPersonaBody(name="Mira", system_prompt="A caller in a hurry.")
persona = ok(create_simulation_persona.sync(client=client, body=persona))
scenario = CreateSimulationScenarioBody.from_dict(
    {
        "name": "A greeting",
        "instructions": 'Say: "Hello."',
        "evaluations": [{"kind": "transcript", "role": "assistant", "includes": "hello"}],
    }
)
scenario = ok(create_simulation_scenario.sync(client=client, body=scenario))
simulation = CreateSimulationBody(assistant_id=assistant.id, persona_id=persona.id, scenario_id=scenario.id)
simulation = ok(create_simulation.sync(client=client, body=simulation))
start = StartSimulationRunBody(mode=RunMode.CHAT, seed=7)
queued = ok(start_simulation_run.sync(simulation.id, client=client, body=start))
for _ in range(1200):
    run = ok(get_simulation_run.sync(queued.id, client=client))
    if run.status == RunStatus.COMPLETED:
        break
    time.sleep(0.1)
assert run.passed is True, run
assert run.evaluations[0].passed and run.call.transcript[0].role.value == "assistant"

refused = create_assistant.sync(client=client, body=CreateAssistantBody(name="", instructions="x"))
assert isinstance(refused, Error) and refused.error.code.value == "validation_failed"
print(f"openapi-python-client: a run of {len(run.call.transcript)} rows passed")
