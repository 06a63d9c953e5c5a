//! The models of a simulation: the caller's, the assistant's and the judge's.
use super::Started;
use crate::live::asking::{Asked, Model, ask_assistant};
use crate::models::realtime::Realtime;
use crate::models::{Allowance, AssistantModel, CallerModel, JudgeModel};
use crate::services::Services;
use crate::simulation::callers_phone::RATE;
use crate::simulation::{Input, Simulation, SimulationPart};
use crate::storage::cost::Cost;

/// One named model for each role.
pub struct Models<'a> {
    services: &'a Services,
    caller: (&'a str, Model<CallerModel>),
    assistant: (&'a str, &'a Model<AssistantModel>),
    /// The session inside the process, of a spoken conversation with a realtime assistant. Others that are realtime are held
    /// for real.
    realtime: Option<Realtime>,
    judge: (&'a str, Model<JudgeModel>),
}

impl<'a> Models<'a> {
    /// The models of a run: caller and judge use the assistant's unless the simulation names others.
    pub fn new(services: &'a Services, started: &'a Started) -> Self {
        let Started { assistant, simulation, .. } = started;
        let catalog = &services.config().catalog;
        let caller = simulation.caller_model.as_deref().unwrap_or(&assistant.model);
        let judge = simulation.judge_model.as_deref().unwrap_or(&assistant.model);
        let spoken = Some(assistant).filter(|_| started.is_voice());
        let realtime = spoken.and_then(|assistant| {
            services.config().realtime_of(assistant, &started.texts.instructions, assistant.specs())
        });
        Self {
            services,
            caller: (caller, CallerModel::new(catalog, caller, &simulation.persona, &simulation.scenario)),
            assistant: (&assistant.model, assistant.model()),
            realtime: realtime.map(|settings| Realtime::new(&settings, RATE)),
            judge: (judge, JudgeModel::new(catalog, judge)),
        }
    }

    /// The name of a role's model.
    pub const fn name(&self, part: SimulationPart) -> &'a str {
        match part {
            SimulationPart::Caller => self.caller.0,
            SimulationPart::Assistant => self.assistant.0,
            SimulationPart::Judge => self.judge.0,
        }
    }

    /// Asks the model of a role for the simulation's next input. `None`: there is no question for the judge.
    pub async fn ask(
        &mut self,
        part: SimulationPart,
        simulation: &Simulation,
        allowance: Allowance,
    ) -> Option<Asked<Input>> {
        let ports = self.services.ports();
        Some(match part {
            SimulationPart::Caller => {
                let answer = match &self.caller.1 {
                    Ok(caller) => caller.reply(ports, &simulation.caller_turn(), allowance).await,
                    Err(failure) => Err(failure.clone()),
                };
                Asked::from(answer).map(|reply| Input::CallerReply { reply })
            }
            SimulationPart::Assistant => {
                let turn = simulation.assistant_turn();
                let asked = match &self.realtime {
                    Some(realtime) => {
                        let (answer, _) =
                            realtime.ask(ports.clock.now_ms(), turn.history.to_vec(), turn.seed);
                        // It costs nothing.
                        Asked { answer: answer.await, cost: Cost::default() }
                    }
                    None => ask_assistant(self.services, self.assistant.1, &turn, allowance, None).await,
                };
                asked.map(|reply| Input::AssistantReply { reply })
            }
            SimulationPart::Judge => {
                let question = simulation.judge_question()?;
                let answer = match &mut self.judge.1 {
                    Ok(judge) => judge.rule(ports, &question.turn(), allowance).await,
                    Err(failure) => Err(failure.clone()),
                };
                Asked::from(answer).map(|ruling| Input::Verdict { ruling })
            }
        })
    }
}
