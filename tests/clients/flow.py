"""The steps of both Python clients; the same as in flow.mjs.

`client` offers `list_tools()` and `call(name, arguments)`. A tool is (name, description, output schema), a
result is (is_error, structured, text).
"""

import asyncio
import json
import os
import re

URL = os.environ["SIDETONE_URL"].rstrip("/") + "/mcp"
HEADERS = {"Authorization": f"Bearer {os.environ['SIDETONE_KEY']}"}


async def check(client):
    """Runs all steps; raises at the first failure."""
    count = await check_tools(client)
    await check_flow(client)
    return f"{count} tools, flow passed"


async def check_tools(client):
    tools = await client.list_tools()
    assert len(tools) >= 40, f"only {len(tools)} tools"
    for name, description, output_schema in tools:
        assert re.fullmatch(r"[a-z][a-z0-9_]{0,39}", name), name
        assert description, f"{name} has no description"
        assert output_schema is None, f"{name} declares an output schema"
    assert len({name for name, *_ in tools}) == len(tools), "a name occurs twice"
    return len(tools)


async def check_flow(client):
    async def ok(name, **arguments):
        is_error, structured, text = await client.call(name, arguments)
        assert not is_error, f"{name} failed: {text}"
        return structured

    async def refused(code, name, **arguments):
        # A rejection is a tool result with the REST error, never a protocol error.
        is_error, structured, text = await client.call(name, arguments)
        assert is_error, f"{name} succeeded: {text}"
        assert structured["error"]["code"] == code, structured
        assert json.loads(text)["error"]["code"] == code, "the text contains the same error"
        return structured["error"]

    created = await ok(
        "create_assistant",
        data={"name": "Harbour Dental", "instructions": "You answer the phone of a dental practice."},
    )
    assert created["name"] == "Harbour Dental"
    assistant = created["id"]
    assert await ok("get_assistant", id=assistant) == created

    first_message = "Good morning, Harbour Dental. How can I help?"
    updated = await ok(
        "update_assistant", id=assistant, if_revision=created["revision"], data={"first_message": first_message}
    )
    assert updated["first_message"] == first_message
    assert updated["revision"] == created["revision"] + 1
    stale = await refused(
        "revision_conflict", "update_assistant", id=assistant, if_revision=created["revision"], data={"name": "Late"}
    )
    assert stale["details"]["current"] == updated["revision"]
    field = await refused("validation_failed", "create_assistant", data={"name": "No instructions"})
    assert [f["field"] for f in field["details"]["fields"]] == ["instructions"]

    persona = await ok(
        "create_simulation_persona", data={"name": "Polite caller", "system_prompt": "You are polite and brief."}
    )
    scenario = await ok(
        "create_simulation_scenario",
        # Some clients send objects as JSON text.
        data=json.dumps(
            {
                "name": "Opening hours",
                "instructions": 'Say "When are you open on Friday?" and then say goodbye.',
                "evaluations": [
                    {"kind": "transcript", "role": "assistant", "includes": "harbour dental"},
                    {"kind": "transcript", "role": "user", "includes": "open on friday"},
                ],
            }
        ),
    )
    simulation = await ok(
        "create_simulation",
        data={"assistant_id": assistant, "persona_id": persona["id"], "scenario_id": scenario["id"]},
    )

    await refused("confirmation_required", "start_simulation_run", id=simulation["id"], data={"mode": "chat"})
    started = await ok("start_simulation_run", id=simulation["id"], data={"mode": "chat"}, confirm=True)
    assert started["simulation_id"] == simulation["id"]
    run = started
    for _ in range(300):
        run = await ok("get_simulation_run", id=started["id"])
        if run["status"] not in ("queued", "running"):
            break
        await asyncio.sleep(0.1)
    assert run["status"] == "completed", run
    assert run["passed"] is True, run
    assert [e["passed"] for e in run["evaluations"]] == [True, True], run
    assert run["call"]["transcript"], "the call of the run contains the transcript"

    is_error, structured, text = await client.call("list_assistants", {})
    assert not is_error
    assert any(item["id"] == assistant for item in structured["items"])
    assert json.loads(text) == structured["items"], "the text is the REST response"

    try:
        await client.call("no_such_tool", {})
    except client.protocol_error:
        pass
    else:
        raise AssertionError("an unknown tool is a protocol error")

    await ok("delete_simulation_run", id=run["id"])
    await ok("delete_assistant", id=assistant, if_revision=updated["revision"])
    await refused("not_found", "get_assistant", id=assistant)
    await ok("delete_simulation_persona", id=persona["id"])
    await ok("delete_simulation_scenario", id=scenario["id"])
