//! Lists the adapters with their health, and switches adapters on and off.

use std::sync::Arc;

use agtmux_agents::{AgentRegistry, ManifestFault, ManifestOrigin};
use agtmux_api::SCHEMA_VERSION;
use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::wire::{AdapterCapabilities, AdapterHealth, AdapterItem, AdapterList, AdapterOrigin, BrokenManifest};
use agtmux_core::resolver::ResolverInput;
use agtmux_core::runtime::RuntimeId;
use agtmux_core::state::{ReasonCode, State};
use jiff::Timestamp;

use super::{Engine, EngineStep};
use crate::store::StoreChange;

impl Engine {
    pub(super) fn adapters(&self, now: Timestamp) -> AdapterList {
        let items = self.registry.adapters().map(|adapter| self.adapter(adapter, now));
        let broken = self.registry.faults().iter().filter(|fault| fault.agent_kept.is_none());
        let broken = broken
            .map(|ManifestFault { error, .. }| BrokenManifest { file: error.file.clone(), error: error.to_string() });
        AdapterList { schema_version: SCHEMA_VERSION, items: items.collect(), broken: broken.collect() }
    }

    fn adapter(&self, adapter: agtmux_agents::Adapter, now: Timestamp) -> AdapterItem {
        let enabled = !self.disabled_adapters.contains(&adapter.name);
        let runtimes = self.runtimes_of(&adapter.name);
        let records = runtimes.iter().filter_map(|id| self.states.state(id));
        // The state of a suspended or unreachable agent is unknown, but its adapter is not the cause.
        let counts_as_unknown =
            |reason: Option<ReasonCode>| !matches!(reason, Some(ReasonCode::Suspended | ReasonCode::TargetUnreachable));
        let unknown = records.filter(|r| r.state == State::Unknown && counts_as_unknown(r.reason)).count();
        let ledgers = runtimes.iter().filter_map(|id| self.states.ledger(id));
        let last_heard = ledgers.flat_map(|ledger| ledger.rated_observations(now)).map(|s| s.recorded_at).max();
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let (origin, file, replaces_built_in) = match adapter.origin {
            ManifestOrigin::BuiltIn => (AdapterOrigin::BuiltIn, None, false),
            ManifestOrigin::File { path, replaces } => (AdapterOrigin::File, Some(path), replaces),
        };
        let fault = self.registry.faults().iter().find(|fault| fault.agent_kept.as_ref() == Some(&adapter.name));
        AdapterItem {
            origin,
            file,
            replaces_built_in,
            error: fault.map(|fault| fault.error.to_string()),
            warnings: adapter.warnings,
            name: adapter.name,
            contract: adapter.contract,
            version: adapter.version,
            enabled,
            capabilities: wire_capabilities(adapter.capabilities),
            sources: adapter.sources.into_iter().collect(),
            measured: adapter.measured,
            health: match (enabled, runtimes.len(), unknown) {
                (false, _, _) => AdapterHealth::Disabled,
                (true, 0, _) => AdapterHealth::Unused,
                (true, _, 0) => AdapterHealth::Ok,
                (true, _, _) => AdapterHealth::Degraded,
            },
            agents: count(runtimes.len()),
            unknown: count(unknown),
            last_heard,
        }
    }

    fn runtimes_of(&self, agent_type: &str) -> Vec<RuntimeId> {
        let of_type = |id: &&RuntimeId| self.states.agent_type(id).is_some_and(|known| known.as_str() == agent_type);
        self.runtime_panes.keys().filter(of_type).cloned().collect()
    }

    pub(super) fn switch_adapter(
        &mut self,
        name: &str,
        enabled: bool,
        step: &mut EngineStep,
    ) -> Result<AdapterList, ApiError> {
        if self.registry.agent(name).is_none() {
            let known = self.registry.names();
            let error = ApiError::new(ErrorCode::NotFound, format!("there is no adapter '{name}'"));
            return Err(error.with_hint(format!("known adapters: {}", known.join(", "))));
        }
        let changed =
            if enabled { self.disabled_adapters.remove(name) } else { self.disabled_adapters.insert(name.to_owned()) };
        if changed {
            step.changes.push(StoreChange::PutAdapter { name: name.to_owned(), enabled, at: step.now });
            for runtime in self.runtimes_of(name) {
                if !enabled {
                    self.forget_evidence(runtime, step);
                } else if !self.apply_remote_ledger(&runtime, step) {
                    self.request_recheck(&runtime);
                }
            }
        }
        Ok(self.adapters(step.now))
    }

    /// Drops all evidence about a runtime.
    fn forget_evidence(&mut self, runtime: RuntimeId, step: &mut EngineStep) {
        self.memories.forget(&runtime);
        step.changes.push(StoreChange::PutMemory { runtime: runtime.clone(), memory: Box::default() });
        self.resolve(ResolverInput::LedgerCleared { runtime }, None, step);
    }

    /// Replaces the registry, and drops evidence that came from rules that have changed.
    pub(super) fn replace_registry(&mut self, registry: Arc<AgentRegistry>, step: &mut EngineStep) {
        for name in registry.changed_agents(&self.registry) {
            for runtime in self.runtimes_of(&name) {
                // Evidence from a remote host comes from that host's own rules.
                if !self.remote_agents.contains_key(&runtime) {
                    self.forget_evidence(runtime, step);
                }
            }
        }
        self.registry = registry;
    }

    /// Whether the adapter of this runtime is switched on.
    pub(super) fn is_adapter_enabled(&self, runtime: &RuntimeId) -> bool {
        self.disabled_adapters.is_empty()
            || self
                .states
                .agent_type(runtime)
                .is_some_and(|agent_type| !self.disabled_adapters.contains(agent_type.as_str()))
    }
}

fn wire_capabilities(capabilities: agtmux_agents::AgentCapabilities) -> AdapterCapabilities {
    let agtmux_agents::AgentCapabilities {
        event_driven,
        polling_required,
        supports_waiting_approval,
        supports_waiting_input,
        supports_completed,
    } = capabilities;
    AdapterCapabilities {
        event_driven,
        polling_required,
        supports_waiting_approval,
        supports_waiting_input,
        supports_completed,
    }
}
