import { useQueryClient } from '@tanstack/react-query';
import { Suspense, useEffect, useRef, useState } from 'react';
import { ApiError } from '../api/client';
import type { Selectors, ViewAnswer, ViewInfo } from '../api/types';
import { captureKeys, takesText } from '../base/browser/host';
import { useClient, usePrefetch, useRuns, useView, useViews, useWorkers } from '../state/queries';
import { StepNounContext } from '../state/steps';
import {
  SelectionContext,
  useSelectionState,
  type Selection,
  type SelectionControl,
} from '../state/selection';
import { useRestoredScroll } from '../state/restored';
import type { ThemeChoice } from '../state/theme';
import { VIEWS, type ViewProps } from '../views';
import GenericView from '../views/generic';
import { Button } from '../widgets/inputs/Button';
import { ErrorBoundary, Failed } from './Failed';
import { HealthDrawer } from './HealthDrawer';
import { awaitedTarget, type AwaitedTarget } from './awaited';
import { Loading } from './Loading';
import { Nav } from './Nav';
import { NoRuns, Unreachable } from './NoRuns';
import { Saved } from './Saved';
import { Shortcuts } from './Shortcuts';
import { TopBar } from './TopBar';
import { Waiting } from './Waiting';
import css from './App.module.css';

interface Props {
  theme: ThemeChoice;
  onTheme: () => void;
}

export function App({ theme, onTheme }: Props) {
  const control = useSelectionState();
  return (
    <SelectionContext value={control}>
      <Shell control={control} theme={theme} onTheme={onTheme} />
    </SelectionContext>
  );
}

function Shell({ control, theme, onTheme }: Props & { control: SelectionControl }) {
  const { selection } = control;
  const [healthOpen, setHealthOpen] = useState(false);
  const [helpOpen, setHelpOpen] = useState(false);
  const runs = useRuns();
  const runList = runs.data?.runs ?? [];
  // As the server chooses: the first run with a trace.
  const firstRun = runList.find(({ workers }) => workers > 0) ?? runList[0];
  const run = selection.run ?? firstRun?.name;
  const onlyDumps = runList.find(({ name }) => name === run)?.workers === 0;
  const isListed = runList.some(({ name }) => name === run);
  const workers = useWorkers(isListed ? run : undefined);
  const selectors: Selectors = { run, worker: selection.worker, span: selection.span };
  const slug = VIEWS[selection.view]?.initialSlug ?? selection.view;
  const answer = useView<never>(slug, selectors, serverParams(selection), runList.length > 0);
  const views = useViews(runList.length > 0 ? selectors : {});
  const prefetch = usePrefetch(selectors);
  const onApproach = (slug: string) => {
    loadCode(slug);
    if (VIEWS[slug]?.slow) {
      prefetch(slug);
    }
  };
  useEffect(() => loadCode(selection.view), [selection.view]); // while the server answers
  useEffect(() => captureKeys(focusPage), []);
  const { select } = control;
  const onlyView = onlyDumps
    ? 'hangs'
    : onlyAvailable(views.isPlaceholderData ? undefined : views.data?.views);
  useEffect(() => {
    // A run of flight recorder dumps or of memory snapshots has nothing to show in the first tab.
    if (onlyView && selection.view === 'overview') {
      select({ view: onlyView }, true);
    }
  }, [onlyView, selection.view, select]);
  const page = useRef<HTMLElement>(null);
  const isDrawn = answer.data?.state === 'ready' || answer.error !== null;
  useRestoredScroll(page, 'page', isDrawn);

  const queries = useQueryClient();
  const { report } = useClient();
  // A report is complete: what it doesn't have won't come.
  const awaited = report ? null : awaitedTarget(selection, runs.data?.runs, workers.data?.workers);
  const isAwaiting = awaited !== null;
  useEffect(() => {
    if (!isAwaiting) {
      const predicate = ({ state }: { state: { error: unknown } }) => state.error !== null;
      void queries.invalidateQueries({ queryKey: ['view'], predicate });
    }
  }, [queries, isAwaiting]);
  const answerKey = [run, selection.worker, selection.span, answer.data?.state, answer.error?.message].join(
    '\n',
  );
  useEffect(() => {
    // Once a file has been read or has failed, the server knows more about its run.
    if (answerKey) {
      for (const key of ['workers', 'runs', 'views', 'health']) {
        void queries.invalidateQueries({ queryKey: [key] });
      }
    }
  }, [queries, answerKey]);

  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (takesText(event.target) || event.ctrlKey || event.metaKey || event.altKey) {
        return;
      }
      if (event.key === '?') {
        setHelpOpen(open => !open);
      } else if (event.key === 'h') {
        setHealthOpen(open => !open);
      } else if (event.key === 't') {
        onTheme();
      } else if (event.key === 'r' || event.key === 'w') {
        event.preventDefault();
        document.querySelector<HTMLButtonElement>(`[data-picker=${event.key}] button`)?.click();
      }
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, [onTheme]);

  return (
    <StepNounContext value={views.data?.step_noun ?? 'step'}>
      <div className={css.app}>
        <Button look="primary" className={css.skip} onClick={focusPage}>
          Skip to content
        </Button>
        <Nav
          views={views.data?.views}
          selectors={selectors}
          onApproach={onApproach}
          theme={theme}
          onTheme={onTheme}
          onHealth={() => setHealthOpen(true)}
          onHelp={() => setHelpOpen(true)}
        />
        <div className={css.main}>
          <TopBar
            runs={runList}
            run={run}
            workers={workers.data?.workers ?? []}
            answer={answer.data}
            failed={answer.error instanceof ApiError && answer.error.status === 422}
            awaiting={isAwaiting}
            onHealth={() => setHealthOpen(true)}
          />
          <main
            className={css.page}
            id="page"
            ref={page}
            tabIndex={-1}
            data-shown={isDrawn ? `${selection.view} ${run}` : undefined}
          >
            <ErrorBoundary key={`${selection.view}/${run}`}>
              <PageContent
                runs={runs}
                view={selection.view}
                answer={answer}
                awaited={awaited}
                run={run}
                title={
                  views.data?.views.find(v => v.slug === selection.view)?.title ??
                  VIEWS[selection.view]?.title
                }
              />
            </ErrorBoundary>
          </main>
        </div>
        <HealthDrawer
          run={run}
          problems={runs.data?.problems ?? []}
          others={runs.data?.others ?? null}
          open={healthOpen}
          onClose={() => setHealthOpen(false)}
        />
        <Shortcuts open={helpOpen} onClose={() => setHelpOpen(false)} />
        <Saved />
      </div>
    </StepNounContext>
  );
}

const focusPage = () => document.getElementById('page')?.focus({ preventScroll: true });

/** Return the view that alone has data; undefined if several have, or if that isn't known yet. */
function onlyAvailable(views: readonly ViewInfo[] = []): string | undefined {
  const candidates = views.filter(view => view.available !== false);
  return candidates.length === 1 && candidates[0]?.available ? candidates[0].slug : undefined;
}

/** Load the code of a view; an error occurs again, and is shown, when the view is drawn. */
function loadCode(slug: string) {
  VIEWS[slug]?.load().catch(() => undefined);
}

/** Return the parameters that the server takes; a view unknown to this page gets all. */
function serverParams({ view, params }: Selection): Record<string, string> {
  const entry = VIEWS[view];
  if (!entry) {
    return params;
  }
  return Object.fromEntries(Object.entries(params).filter(([name]) => entry.serverParams.includes(name)));
}

/** Return the names of the trace that is shown. */
const crumbOf = ({ run, worker, span }: ViewAnswer<never>): string =>
  [run, worker, span && `span ${span}`].filter(Boolean).join(' · ');

interface PageContentProps {
  runs: ReturnType<typeof useRuns>;
  view: string;
  answer: ReturnType<typeof useView<never>>;
  awaited: AwaitedTarget | null;
  run: string | undefined;
  title: string | undefined;
}

/** What the page shows: the view, or why it can't be shown. */
function PageContent({ runs, view, answer, awaited, run, title }: PageContentProps) {
  if (runs.error && !runs.data) {
    return <Unreachable error={runs.error} />;
  }
  if (!runs.data || (runs.data.scanning && runs.data.runs.length === 0)) {
    return <Loading title={title} crumb={run} progress={null} activity="Looking for traces" />;
  }
  if (awaited && !runs.data.error && answer.data?.state !== 'ready') {
    return <Waiting target={awaited} root={runs.data.root} run={run} />;
  }
  if (runs.data.runs.length === 0) {
    return <NoRuns root={runs.data.root} error={runs.data.error ?? null} others={runs.data.others ?? null} />;
  }
  const data: ViewAnswer<never> | undefined = answer.data;
  if (answer.error && data?.state !== 'ready') {
    return <Failed error={answer.error} run={run} />;
  }
  if (data?.state !== 'ready') {
    return (
      <Loading
        title={title}
        crumb={data ? crumbOf(data) : run}
        progress={data?.progress ?? null}
        waiting={data?.state === 'waiting'}
      />
    );
  }
  const entry = VIEWS[view];
  const crumb = crumbOf(data);
  if (!entry) {
    return <GenericView payload={data.payload} crumb={crumb} title={title ?? view} />;
  }
  const Component = entry.Component as React.ComponentType<ViewProps>;
  return (
    <Suspense fallback={<Loading title={title} crumb={crumb} progress={null} />}>
      <Component
        payload={data.payload}
        crumb={crumb}
        run={data.run}
        worker={data.worker}
        span={data.span}
        base={data.base}
      />
    </Suspense>
  );
}
