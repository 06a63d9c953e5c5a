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
