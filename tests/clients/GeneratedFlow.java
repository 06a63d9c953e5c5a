import java.util.List;
import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.api.AssistantsApi;
import org.openapitools.client.api.SimulationsApi;
import org.openapitools.client.model.*;
import org.openapitools.client.model.Error;

/** The flow of the Java client that openapi-generator made. */
class GeneratedFlow {
  private static void must(boolean condition, String what) {
    if (!condition) throw new IllegalStateException(what);
  }

  public static void main(String[] arguments) throws Exception {
    ApiClient client = new ApiClient();
    client.updateBaseUri(System.getenv("SIDETONE_URL"));
    client.setRequestInterceptor(
        request -> request.header("Authorization", "Bearer " + System.getenv("SIDETONE_KEY")));
    AssistantsApi assistants = new AssistantsApi(client);
    SimulationsApi simulations = new SimulationsApi(client);

    Assistant assistant = assistants.createAssistant(
        new CreateAssistantRequest()
            .name("Harbour Dental")
            .instructions("You answer the telephone.")
            .firstMessage("Harbour Dental, hello."),
        null);
    must(assistant.getCreatedAt().getYear() > 2000, "times are times");
    List<Assistant> listed = assistants.listAssistants(20, null);
    must(listed.stream().anyMatch(one -> one.getId().equals(assistant.getId())), "the assistant is in the list");

    Persona persona = simulations.createSimulationPersona(
        new CreateSimulationPersonaRequest().name("Mira").systemPrompt("A caller in a hurry."), null);
    Scenario scenario = simulations.createSimulationScenario(
        new CreateSimulationScenarioRequest()
            .name("A greeting")
            .instructions("Say: \"Hello.\"")
            .addEvaluationsItem(
                new EvaluationInput()
                    .kind(EvaluationKind.TRANSCRIPT)
                    .role(EvaluationRole.ASSISTANT)
                    .includes("hello")),
        null);
    Simulation simulation = simulations.createSimulation(
        new CreateSimulationRequest()
            .assistantId(assistant.getId())
            .personaId(persona.getId())
            .scenarioId(scenario.getId()),
        null);
    long seed = 7_000_000_000L; // more than 32 bits
    Run queued = simulations.startSimulationRun(
        simulation.getId(), null, new StartSimulationRunRequest().mode(RunMode.CHAT).seed(seed));
    RunDetail run = simulations.getSimulationRun(queued.getId(), null);
    for (int tries = 0; run.getStatus() != RunStatus.COMPLETED && tries < 1200; tries += 1) {
      Thread.sleep(100);
      run = simulations.getSimulationRun(queued.getId(), null);
    }
    must(Boolean.TRUE.equals(run.getPassed()) && run.getError() == null, "the run has not passed: " + run);
    must(run.getSeed() == seed, "numbers are whole");
    must(run.getEvaluations().get(0).getPassed(), "the run has evaluations");
    must(run.getCall().getTranscript().get(0).getRole() == TranscriptRole.ASSISTANT, "the run has a transcript");

    try {
      assistants.createAssistant(new CreateAssistantRequest().name("").instructions("x"), null);
      throw new IllegalStateException("an empty name was taken");
    } catch (ApiException refused) {
      must(refused.getCode() == 422, "the status of a refusal");
      Error error = client.getObjectMapper().readValue(refused.getResponseBody(), Error.class);
      must(error.getError().getCode().getValue().equals("validation_failed"), "an error has its type, too");
    }
    System.out.println("openapi-generator, Java: a run of " + run.getCall().getTranscript().size() + " rows passed");
  }
}
