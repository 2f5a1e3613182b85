// What the page shows when there are no traces, or no server.
import type { ErrorInfo, OtherTools } from '../api/types';
import { Answer } from '../widgets/Answer';
import { Code } from '../widgets/Code';
import { Panel } from '../widgets/Panel';
import { OtherFiles } from './HealthDrawer';

const EXAMPLE = `from torch.profiler import profile, schedule, tensorboard_trace_handler

with profile(
    schedule=schedule(wait=1, warmup=1, active=3),
    on_trace_ready=tensorboard_trace_handler("log/my_run"),
    record_shapes=True,
    profile_memory=True,
    with_stack=True,
) as prof:
    for batch in loader:
        train(batch)
        prof.step()`;

interface Props {
  root: string;
  error: ErrorInfo | null;
  others: OtherTools | null;
}

/** An empty log folder, or one that can't be listed, with how to record a trace. */
export function NoRuns({ root, error, others }: Props) {
  return (
    <>
      <Answer crumb={root} why={error ? error.hint : 'New traces appear here automatically, within seconds.'}>
        {error ? `Can't list the log folder: ${error.message}.` : 'No traces in this folder yet.'}
      </Answer>
      {others && (
        <Panel title={others.headline}>
          <OtherFiles others={others} />
        </Panel>
      )}
      <Panel title="Record a trace">
        <p>
          Wrap the training loop in the profiler and write its files anywhere below{' '}
          <span className="mono">{root}</span>.
        </p>
        <Code>{EXAMPLE}</Code>
      </Panel>
    </>
  );
}

export function Unreachable({ error }: { error: Error }) {
  return (
    <Answer crumb="" why="Retrying every few seconds.">
      {error.message}.
    </Answer>
  );
}
