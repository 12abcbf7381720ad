//! Tells a caller which agent and which pane it belongs to.

use agtmux_api::SCHEMA_VERSION;
use agtmux_api::wire::CallerReport;
use agtmux_core::ids::TargetName;

use super::ancestry::{agent_among, ancestors};
use super::{Actions, RequestCaller};

impl Actions {
    /// Describes the caller by its process.
    pub(crate) async fn report_caller(&self, caller: &RequestCaller) -> CallerReport {
        let report = CallerReport { schema_version: SCHEMA_VERSION, ..CallerReport::default() };
        let Some(pid) = caller.peer.and_then(|peer| peer.pid) else { return report };
        let processes = self.0.discovery.processes();
        let ancestry = ancestors(&*processes, pid);
        let agent_type = agent_among(&self.0.discovery.registry(), &ancestry);
        let report = CallerReport { agent_type, ..report };
        let pids = ancestry.iter().map(|process| process.pid).collect();
        let Some(pane) = self.0.engine.local_agents(pids).await.pane else { return report };
        let server = &pane.key.server.server;
        let runtime = self.0.engine.runtime_in_pane(server.clone(), pane.key.pane).await;
        // The pane may contain an agent that did not start the caller, such as one in the background.
        let runtime = runtime.filter(|runtime| {
            let agent = (runtime.process.pid, runtime.process.start);
            ancestry.iter().any(|process| (process.pid, process.start) == agent)
        });
        let servers = self.0.discovery.servers();
        let health =
            servers.iter().find(|health| health.target == TargetName::LOCAL && health.server == server.as_str());
        CallerReport {
            runtime_id: runtime.map(|runtime| runtime.id.to_string()),
            server: Some(server.to_string()),
            socket: health.map(|health| health.socket.clone()),
            pane_id: Some(pane.key.pane.to_string()),
            ..report
        }
    }
}
