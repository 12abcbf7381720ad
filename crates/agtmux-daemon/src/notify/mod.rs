//! Notifications: tells a person when an agent needs one. The rules and times are in `agtmux_core::notify`; this module
//! feeds that state machine, and delivers what it decides. Without rules, nothing here runs.

mod agents;
mod channels;
mod follow;
mod journal;
mod message;
mod open_notices;
mod viewers;

use std::sync::Arc;

use agtmux_api::SCHEMA_VERSION;
use agtmux_api::config::NotifyConfig;
use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::paths::Paths;
use agtmux_api::wire::{
    Notice, NotifyLog, NotifyLogEvent, NotifyLogItem, NotifyLogQuery, NotifyTestItem, NotifyTestReport,
};
use agtmux_core::notify::NotifyChannel;
use futures_util::future::join_all;
use jiff::tz::TimeZone;
use tokio::sync::watch;
use uuid::Uuid;

use crate::background::BackgroundTasks;
use crate::clock::Clock;
use crate::event_log::EventLog;
use crate::observe::Discovery;
use channels::{ChannelWorkers, Channels, WorkerContext};
use follow::NoticeFollower;
use journal::Journal;
use message::NoticeWriter;
use open_notices::OpenNoticeFile;

#[derive(Clone)]
pub(crate) struct Notifier {
    config: NotifyConfig,
    channels: Channels,
    journal: Arc<Journal>,
    clock: Clock,
}

impl Notifier {
    /// Starts to follow the agents, if there are rules.
    pub(crate) fn start(
        event_log: Arc<EventLog>,
        discovery: Discovery,
        clock: Clock,
        paths: &Paths,
        stopping: watch::Receiver<bool>,
    ) -> Self {
        let background = discovery.background().clone();
        let config = discovery.config().notify.clone();
        let journal = Journal::open(paths, &background);
        let (open_notices, desktop_ids) = OpenNoticeFile::open(&paths.open_notices(), journal.clone());
        let channels = Channels::new(config.clone(), discovery.clone(), desktop_ids);
        let notifier = Self { config, channels, journal, clock };
        if !notifier.config.rules.is_empty() {
            notifier.follow(event_log, discovery, open_notices, stopping, &background);
        }
        notifier
    }

    fn follow(
        &self,
        event_log: Arc<EventLog>,
        discovery: Discovery,
        open_notices: OpenNoticeFile,
        stopping: watch::Receiver<bool>,
        background: &BackgroundTasks,
    ) {
        let Self { config, channels, journal, clock } = self.clone();
        let context = WorkerContext { channels, journal: journal.clone(), clock: clock.clone() };
        let workers = ChannelWorkers::start(&config.used_channels(), &context, background);
        let follower = Arc::new(NoticeFollower { config, event_log, discovery, clock, journal, workers, open_notices });
        background.keep("notify", move || {
            let (follower, stopping) = (follower.clone(), stopping.clone());
            async move { follower.run(stopping).await }
        });
    }

    /// Sends a test notice on this channel, or on all channels that rules name, and waits for the results.
    pub(crate) async fn test(&self, channel: Option<NotifyChannel>) -> Result<NotifyTestReport, ApiError> {
        let used = self.config.used_channels();
        let channels = channel.map_or(used, |channel| vec![channel]);
        if channels.is_empty() {
            let error = ApiError::new(ErrorCode::Precondition, "no rule for notifications is configured");
            let hint = "add [[notify.rules]] to the configuration and run agtmux daemon restart, or name a channel";
            return Err(error.with_hint(hint));
        }
        if let Some(setting) = channels.iter().find_map(|channel| self.config.missing_setting(*channel)) {
            let error = ApiError::new(ErrorCode::Precondition, format!("{setting} is not set"));
            return Err(error.with_hint("set it in the configuration and run agtmux daemon restart"));
        }
        let items = join_all(channels.into_iter().map(|channel| self.test_channel(channel))).await;
        Ok(NotifyTestReport { schema_version: SCHEMA_VERSION, items })
    }

    async fn test_channel(&self, channel: NotifyChannel) -> NotifyTestItem {
        let notice_id = Uuid::new_v4().simple().to_string();
        let notice = NoticeWriter { zone: TimeZone::system() }.test(&notice_id, self.clock.now());
        let error = self.channels.deliver(channel, &notice).await.err();
        let event = if error.is_none() { NotifyLogEvent::Sent } else { NotifyLogEvent::Failed };
        self.record(channel, event, error.clone(), notice);
        NotifyTestItem { channel, delivered: error.is_none(), error }
    }

    fn record(&self, channel: NotifyChannel, event: NotifyLogEvent, reason: Option<String>, notice: Notice) {
        self.journal.add(NotifyLogItem { at: self.clock.now(), event, channel: Some(channel), reason, notice });
    }

    pub(crate) fn log(&self, query: &NotifyLogQuery) -> NotifyLog {
        NotifyLog { schema_version: SCHEMA_VERSION, items: self.journal.list(query) }
    }
}
