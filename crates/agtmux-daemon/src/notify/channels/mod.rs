//! The channels that deliver notices. Each delivery has a time limit. What a notice contains is data for every channel:
//! no shell, tmux format, markup or escape sequence is made from it.

mod curl;
mod dbus;
mod desktop;
mod http;
mod program;
mod terminals;
mod worker;

use std::sync::Arc;

use agtmux_api::config::NotifyConfig;
use agtmux_api::wire::{Notice, NoticeKind};
use agtmux_core::notify::NotifyChannel;

use crate::observe::Discovery;
pub(super) use desktop::{DesktopId, DesktopIds};
pub(super) use worker::{ChannelWorkers, WorkerContext};

/// Why a channel did not take a notice.
pub(super) type DeliveryResult = Result<(), String>;

#[derive(Clone)]
pub(super) struct Channels(Arc<ChannelsInner>);

struct ChannelsInner {
    config: NotifyConfig,
    discovery: Discovery,
    desktop_ids: Arc<DesktopIds>,
}

impl Channels {
    pub(super) fn new(config: NotifyConfig, discovery: Discovery, desktop_ids: Arc<DesktopIds>) -> Self {
        Self(Arc::new(ChannelsInner { config, discovery, desktop_ids }))
    }

    /// Sends or withdraws a notice. A channel that cannot withdraw must not get a withdrawal.
    pub(super) async fn deliver(&self, channel: NotifyChannel, notice: &Notice) -> DeliveryResult {
        let time_limit = self.0.config.timeout.0;
        let delivery = self.deliver_without_limit(channel, notice);
        let ended = tokio::time::timeout(time_limit, delivery).await;
        ended.unwrap_or_else(|_| Err(format!("no answer within {} s", time_limit.as_secs_f64())))
    }

    async fn deliver_without_limit(&self, channel: NotifyChannel, notice: &Notice) -> DeliveryResult {
        let ChannelsInner { config, discovery, desktop_ids } = &*self.0;
        let is_withdrawal = notice.kind == NoticeKind::Withdraw;
        match channel {
            NotifyChannel::Desktop if is_withdrawal => desktop::withdraw(desktop_ids, &notice.notice_id).await,
            NotifyChannel::Desktop => desktop::show(desktop_ids, notice).await,
            NotifyChannel::Tmux => terminals::show_message(discovery, notice, config.tmux_message_time.0).await,
            NotifyChannel::Bell => terminals::write(discovery, b"\x07").await,
            NotifyChannel::Osc => terminals::write(discovery, &terminals::sequence(config.osc_code, notice)).await,
            NotifyChannel::Command => program::run(&config.command, notice).await,
            NotifyChannel::Webhook => http::post_webhook(config, notice).await,
            NotifyChannel::Ntfy if is_withdrawal => http::delete_from_ntfy(config, &notice.notice_id).await,
            NotifyChannel::Ntfy => http::post_to_ntfy(config, notice).await,
        }
    }
}
