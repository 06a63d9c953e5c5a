//! Asks running jobs to make room: they release their lease at their next step, and go on later.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::storage::jobs::Job;
use crate::storage::jobs::claim::Holder;

/// Whether a job should make room for another workspace's.
#[derive(Debug, Clone, Default)]
pub(crate) struct GiveWay(Arc<Wish>);

#[derive(Debug, Default)]
struct Wish {
    is_asked: AtomicBool,
    /// The job cannot go on later: a conversation is being held.
    must_stay: AtomicBool,
}

impl GiveWay {
    /// Whether it should.
    pub fn is_asked(&self) -> bool {
        self.0.is_asked.load(Ordering::Relaxed)
    }

    /// Whether the job cannot make room at present, so that another one is asked.
    pub fn must_stay(&self, must_stay: bool) {
        self.0.must_stay.store(must_stay, Ordering::Relaxed);
    }

    fn ask(&self) {
        self.0.is_asked.store(true, Ordering::Relaxed);
    }

    /// Whether it was asked, and will do so soon.
    fn is_about_to(&self) -> bool {
        self.is_asked() && !self.0.must_stay.load(Ordering::Relaxed)
    }

    fn can_be_asked(&self) -> bool {
        !self.is_asked() && !self.0.must_stay.load(Ordering::Relaxed)
    }

    /// Nobody else has this one: its job is over.
    fn is_over(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }
}

/// The running jobs of a process, oldest first.
#[derive(Debug, Default)]
pub(super) struct RunningJobs(Vec<(Holder, GiveWay)>);

impl RunningJobs {
    /// Adds a job that starts now.
    pub fn add(&mut self, job: &Job) -> GiveWay {
        let give_way = GiveWay::default();
        self.0.push(((job.task.kind(), job.workspace_id.clone()), give_way.clone()));
        give_way
    }

    /// Asks one job of each of these to make room; those that were asked before and have not ended count.
    pub fn ask(&mut self, holders: &[Holder]) {
        self.0.retain(|(_, give_way)| !give_way.is_over());
        let mut asked = self.0.iter().filter(|(_, give_way)| give_way.is_about_to()).count();
        for holder in holders {
            if asked > 0 {
                asked -= 1;
            } else if let Some((_, give_way)) =
                self.0.iter().find(|(one, give_way)| one == holder && give_way.can_be_asked())
            {
                give_way.ask();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::{Id as _, JobId, RunId, WorkspaceId};
    use crate::storage::jobs::Task;

    #[test]
    fn a_job_that_must_stay_is_not_asked_and_another_one_is() {
        let job = |id: &str| Job {
            id: JobId::from_stored(id),
            workspace_id: WorkspaceId::from_stored("ws_1"),
            task: Task::SimulationRun(RunId::from_stored("run_1")),
            lease: String::new(),
            leased_until_ms: 0,
            attempts: 1,
        };
        let mut running = RunningJobs::default();
        let (held, chat) = (running.add(&job("job_1")), running.add(&job("job_2")));
        let holder = (job("job_1").task.kind(), job("job_1").workspace_id);
        held.must_stay(true);
        running.ask(std::slice::from_ref(&holder));
        assert!(!held.is_asked() && chat.is_asked());
        drop(chat);
        running.ask(std::slice::from_ref(&holder));
        assert!(!held.is_asked());
        held.must_stay(false);
        running.ask(&[holder]);
        assert!(held.is_asked());
    }
}
