// The flow of the Go client that openapi-generator made.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	openapi "example.com/sidetone/client"
)

func must(condition bool, what any) {
	if !condition {
		log.Fatal(what)
	}
}

// ok takes what an operation answers.
func ok[T any, R any](answer T, response R, err error) T {
	if failed, is := err.(*openapi.GenericOpenAPIError); is {
		log.Fatal(failed, string(failed.Body()))
	}
	must(err == nil, err)
	return answer
}

func main() {
	configuration := openapi.NewConfiguration()
	configuration.Servers = openapi.ServerConfigurations{{URL: os.Getenv("SIDETONE_URL")}}
	client := openapi.NewAPIClient(configuration)
	ctx := context.WithValue(context.Background(), openapi.ContextAccessToken, os.Getenv("SIDETONE_KEY"))
	assistants, simulations := client.AssistantsAPI, client.SimulationsAPI

	body := openapi.NewCreateAssistantRequest("Harbour Dental", "You answer the telephone.")
	body.SetFirstMessage("Harbour Dental, hello.")
	assistant := ok(assistants.CreateAssistant(ctx).CreateAssistantRequest(*body).Execute())
	must(assistant.CreatedAt.Year() > 2000, "times are times")
	found := false
	for _, one := range ok(assistants.ListAssistants(ctx).Limit(20).Execute()) {
		found = found || one.Id == assistant.Id
	}
	must(found, "the assistant is in the list")

	persona := ok(simulations.CreateSimulationPersona(ctx).CreateSimulationPersonaRequest(
		*openapi.NewCreateSimulationPersonaRequest("Mira", "A caller in a hurry.")).Execute())
	evaluation := openapi.NewEvaluationInput(openapi.EVALUATIONKIND_TRANSCRIPT, "hello")
	evaluation.SetRole(openapi.EVALUATIONROLE_ASSISTANT)
	greeting := openapi.NewCreateSimulationScenarioRequest("A greeting", `Say: "Hello."`)
	greeting.Evaluations = []openapi.EvaluationInput{*evaluation}
	scenario := ok(simulations.CreateSimulationScenario(ctx).CreateSimulationScenarioRequest(*greeting).Execute())
	simulation := ok(simulations.CreateSimulation(ctx).CreateSimulationRequest(
		*openapi.NewCreateSimulationRequest(assistant.Id, persona.Id, scenario.Id)).Execute())
	const seed int64 = 7_000_000_000 // more than 32 bits
	start := openapi.NewStartSimulationRunRequest()
	start.SetMode(openapi.RUNMODE_CHAT)
	start.SetSeed(seed)
	queued := ok(simulations.StartSimulationRun(ctx, simulation.Id).StartSimulationRunRequest(*start).Execute())
	run := ok(simulations.GetSimulationRun(ctx, queued.Id).Execute())
	for tries := 0; run.Status != openapi.RUNSTATUS_COMPLETED && tries < 1200; tries++ {
		time.Sleep(100 * time.Millisecond)
		run = ok(simulations.GetSimulationRun(ctx, queued.Id).Execute())
	}
	passed := run.Passed.Get()
	must(passed != nil && *passed && run.Error.Get() == nil, run)
	must(run.Seed == seed, "numbers are whole")
	passed = run.Evaluations[0].Passed.Get()
	must(passed != nil && *passed, "the run has evaluations")
	must(run.Call.Get().Transcript[0].Role == openapi.TRANSCRIPTROLE_ASSISTANT, "the run has a transcript")

	_, response, err := assistants.CreateAssistant(ctx).CreateAssistantRequest(
		*openapi.NewCreateAssistantRequest("", "x")).Execute()
	must(response.StatusCode == 422, response.Status)
	refused, is := err.(*openapi.GenericOpenAPIError)
	must(is, err)
	model, is := refused.Model().(openapi.Error)
	must(is && model.Error.Code == "validation_failed", "an error has its type, too")
	fmt.Printf("openapi-generator, Go: a run of %d rows passed\n", len(run.Call.Get().Transcript))
}
