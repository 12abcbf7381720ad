//! Runs the daemon from start to stop.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agtmux_api::config::Config;
use agtmux_api::paths::{PathError, Paths};
use jiff::Timestamp;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Notify, watch};

use crate::actions::{Actions, KeptPrompts};
use crate::background::BackgroundTasks;
use crate::bridge::Bridge;
use crate::clock::Clock;
use crate::engine::Engine;
use crate::event_log::EventLog;
use crate::file_guard::FileGuard;
use crate::lock::DaemonLock;
use crate::mirror::Mirrors;
use crate::notify::Notifier;
use crate::observe::{Discovery, ObserverSetup, RecheckHints, UserManifestWatch};
use crate::remote::{TargetManager, TargetOptions};
use crate::screens::Screens;
use crate::serve::web::WebPort;
use crate::serve::{self, ServeContext};
use crate::spool::Spool;
use crate::store::{Store, StoreError, targets as stored_targets};
use crate::tasks::Tasks;
use crate::view::FleetView;
use crate::worktrees::Worktrees;
use crate::{lock, logging};

/// How long the shutdown waits in total for two things: clients disconnect, and the daemon's hooks are removed from the
/// tmux servers.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(4);

/// How many threads read events, files and the store at the same time. The allocator keeps free memory for each thread,
/// so with more threads the memory of the daemon grows under load.
const MAX_BLOCKING_THREADS: usize = 4;

/// An idle thread stays alive for this long, so that the daemon still works when the system allows no new thread.
const THREAD_KEEP_ALIVE: Duration = Duration::from_secs(365 * 24 * 3600);

#[derive(Debug)]
pub struct DaemonOptions {
    pub paths: Paths,
    pub config: Config,
    pub log_to: LogDestination,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogDestination {
    Stderr,
    File,
}

#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    #[error("a daemon is already running for this user{}", pid.map(|p| format!(" (pid {p})")).unwrap_or_default())]
    AlreadyRunning { pid: Option<u32> },
    #[error(transparent)]
    Paths(#[from] PathError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("cannot {what} '{}': {source}", path.display())]
    Io { what: &'static str, path: PathBuf, source: io::Error },
    #[error("cannot {what}: {source}")]
    System { what: &'static str, source: io::Error },
    #[error("the {0} of the daemon ended unexpectedly")]
    PartEnded(&'static str),
}

/// Blocks until the daemon receives SIGTERM, SIGINT or SIGHUP. Calls `on_ready` once when the daemon serves requests.
pub fn run(options: DaemonOptions, on_ready: impl FnOnce() + Send + 'static) -> Result<(), DaemonError> {
    // Files of the daemon are private, whatever the caller's umask.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    raise_file_limit();
    let paths = &options.paths;
    paths.prepare()?;
    let io_error = |what, path: PathBuf| move |source| DaemonError::Io { what, path, source };
    let lock = DaemonLock::acquire(paths).map_err(io_error("lock", paths.lock()))?;
    let Some(lock) = lock else {
        return Err(DaemonError::AlreadyRunning { pid: lock::holder(paths) });
    };
    match options.log_to {
        LogDestination::Stderr => logging::to_stderr(options.config.daemon.log_level),
        LogDestination::File => {
            logging::to_file(options.config.daemon.log_level, &paths.log()).map_err(io_error("write", paths.log()))?;
        }
    }
    // One thread is enough, because the daemon mostly waits. The store has its own thread.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(MAX_BLOCKING_THREADS)
        .thread_keep_alive(THREAD_KEEP_ALIVE)
        .build()
        .map_err(|source| DaemonError::System { what: "start the async runtime", source })?;
    // Held until the store is closed.
    let lock = Arc::new(Mutex::new(lock));
    let outcome = runtime.block_on(run_until_stopped(options, lock.clone(), on_ready));
    // Connections that are still open are closed here.
    runtime.shutdown_timeout(Duration::from_millis(100));
    drop(lock);
    outcome
}

/// Raises the soft limit of open files. Each pane needs one or two file descriptors, so the usual limit of 1024 is too
/// low for many panes.
fn raise_file_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // If this fails, panes beyond the limit are polled.
    let _ = setrlimit(Resource::Nofile, limit);
}

async fn run_until_stopped(
    options: DaemonOptions,
    lock: Arc<Mutex<DaemonLock>>,
    on_ready: impl FnOnce(),
) -> Result<(), DaemonError> {
    let DaemonOptions { paths, config, .. } = options;
    let web_config = config.web.clone();
    let system = |what| move |source| DaemonError::System { what, source };
    let stop = stop_signal().map_err(system("listen for signals"))?;
    // Build the redaction table while the daemon starts, so that the first event does not wait for it.
    tokio::task::spawn_blocking(agtmux_core::redact::prepare);
    let (store, remembered) = Store::open(&paths.database())?;
    let store = Arc::new(store);
    let store_error = Arc::default();
    let clock = Clock::start();
    let fleet = remembered.fleet.clone();
    let event_log = Arc::new(EventLog::new(FleetView::from_fleet(&fleet, clock.now()), remembered.seq));
    let recheck_hints = Arc::new(RecheckHints::default());
    let (engine, handle) = Engine::new(
        clock.clone(),
        config.state,
        remembered,
        store.clone(),
        Arc::clone(&store_error),
        event_log.clone(),
        recheck_hints.clone(),
    )?;
    let manifests = UserManifestWatch::open(paths.agents_dir());
    let mut engine = tokio::spawn(engine.with_registry(manifests.registry()).run());
    let (stopping, is_stopping) = watch::channel(false);
    let background = BackgroundTasks::new(is_stopping.clone());
    let setup = ObserverSetup {
        config,
        hook_dir: paths.hook_dir(),
        engine: handle.clone(),
        recheck_hints,
        clock: clock.clone(),
        background: background.clone(),
    };
    let discovery = Discovery::start(setup, &fleet, manifests).await.map_err(system("watch this machine"))?;
    // Open the socket after the first look at each server, so that the first response has current states. Before that,
    // hooks and the status line find no socket, so they do not wait.
    let socket_error = |source| DaemonError::Io { what: "listen on", path: paths.socket.clone(), source };
    let bound = serve::bind(&paths.socket, &background).map_err(socket_error)?;
    let stored = store.reader().and_then(|reader| {
        stored_targets::all(&reader).map_err(|error| StoreError::Write(format!("cannot read targets: {error}")))
    })?;
    let target_options = TargetOptions {
        program: discovery.config().ssh.program.clone(),
        control_dir: paths.control_dir(),
        discovery: discovery.clone(),
    };
    let targets = TargetManager::start(
        target_options,
        stored,
        &fleet,
        handle.clone(),
        store.clone(),
        event_log.clone(),
        clock.clone(),
    )
    .await;
    let actions = Actions::new(
        handle.clone(),
        discovery.clone(),
        targets.clone(),
        store.clone(),
        clock.clone(),
        paths.tasks_dir(),
        KeptPrompts::in_dir(paths.prompts_dir()),
    );
    actions.follow_kept_prompts();
    let tasks = Tasks::start(handle.clone(), discovery.clone(), actions.clone(), &store, clock.clone(), &paths);
    let mirrors = Mirrors::start(handle.clone(), discovery.clone(), actions.clone(), &paths);
    let web = WebPort::new(web_config, paths.state_dir.clone());
    let screens = Screens::new(handle.clone(), discovery.clone(), targets.clone());
    let bridge = Bridge::start(
        event_log.clone(),
        handle.clone(),
        actions.clone(),
        store.clone(),
        clock.clone(),
        is_stopping.clone(),
        &background,
    );
    let notifier = Notifier::start(event_log.clone(), discovery.clone(), clock, &paths, is_stopping.clone());
    let taken_over = Arc::new(Notify::new());
    let guard = Arc::new(FileGuard {
        paths: paths.clone(),
        lock,
        store: store.clone(),
        engine: handle.clone(),
        discovery: discovery.clone(),
        check_socket: bound.check.clone(),
        taken_over: taken_over.clone(),
    });
    let checked_store = store.clone();
    let context = ServeContext {
        event_log,
        engine: handle.clone(),
        store,
        store_error,
        discovery: discovery.clone(),
        targets: targets.clone(),
        worktrees: Worktrees::new(actions.clone(), handle.clone(), discovery.clone()),
        actions,
        tasks,
        mirrors,
        bridge,
        notifier,
        screens,
        web: web.clone(),
        socket: paths.socket.clone(),
        started_at: Timestamp::now(),
        stopping: is_stopping,
    };
    web.open_if_configured(&context).await.map_err(system("open the port"))?;
    let mut server = tokio::spawn(serve::serve(bound, context));
    let spool = Arc::new(Spool::new(paths.spool_dir(), handle.clone(), discovery.clone()));
    background.keep("spool", move || {
        let spool = spool.clone();
        async move { spool.run().await }
    });
    background.keep("file_guard", move || {
        let guard = guard.clone();
        async move { guard.run().await }
    });
    tracing::info!(version = agtmux_api::VERSION, socket = %paths.socket.display(), "ready");
    notify_service_manager(sd_notify::NotifyState::Ready);
    on_ready();
    tokio::spawn(async move { checked_store.check_large_tables().await });
    let outcome = tokio::select! {
        () = stop => Ok(()),
        () = taken_over.notified() => Ok(()),
        // Without its engine or its API server, the daemon stops. The next client starts a new daemon, which reads the
        // store.
        _ = &mut engine => Err(DaemonError::PartEnded("engine")),
        _ = &mut server => Err(DaemonError::PartEnded("server")),
    };
    tracing::info!("stopping");
    notify_service_manager(sd_notify::NotifyState::Stopping);
    // End the streams cleanly only after a planned stop. After a failure the streams break, so that their clients start
    // a new daemon.
    let is_planned = outcome.is_ok();
    if is_planned {
        let _ = stopping.send(true);
    }
    let shutdown = async {
        targets.shut_down().await;
        discovery.stop().await;
        handle.flush().await;
        if is_planned && !server.is_finished() {
            let _ = server.await;
        }
        if is_planned {
            web.finish().await;
        }
    };
    if tokio::time::timeout(SHUTDOWN_TIMEOUT, shutdown).await.is_err() {
        tracing::warn!("shutdown took too long and was cut short; the next start removes what is left");
    }
    outcome.inspect_err(|error| tracing::error!(%error, "the daemon stopped"))
}

fn notify_service_manager(state: sd_notify::NotifyState<'_>) {
    // Does nothing unless a service manager started the daemon.
    let _ = sd_notify::notify(&[state]);
}

fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hangup = signal(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hangup.recv() => {}
        }
    })
}
