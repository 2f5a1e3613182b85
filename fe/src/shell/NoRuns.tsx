import type { ErrorInfo, OtherTools } from '../api/types';
import { Answer } from '../widgets/Answer';
import { Code } from '../widgets/Code';
import { Panel } from '../widgets/Panel';
import { OtherFiles } from './OtherFiles';

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

export function NoRuns({ root, error, others }: Props) {
  return (
    <>
      <Answer crumb={root} why={error ? error.hint : 'New traces appear here by themselves, within seconds.'}>
        {error
          ? `The log folder cannot be listed: ${error.message}.`
          : 'There is no trace in this folder yet.'}
      </Answer>
      {others && (
        <Panel title={others.headline}>
          <OtherFiles others={others} />
        </Panel>
      )}
      <Panel title="Record one">
        <p>
          Wrap the training loop in the profiler; its files may lie anywhere below{' '}
          <span className="mono">{root}</span>.
        </p>
        <Code>{EXAMPLE}</Code>
      </Panel>
    </>
  );
}

export function Unreachable({ error }: { error: Error }) {
  return (
    <Answer crumb="" why="The page tries again every few seconds.">
      {error.message}.
    </Answer>
  );
}
