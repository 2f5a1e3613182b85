import type { TracePayload } from '../../api/types';
import { readRanks } from '../../state/ranks';
import { useSelection } from '../../state/selection';
import { OneTrace } from './OneTrace';
import { MergedTrace } from './ranks/MergedTrace';

/** One trace, or several ranks of the run as one. */
export default function TraceView({
  payload,
  crumb,
  run,
}: {
  payload: TracePayload;
  crumb: string;
  run: string;
}) {
  const { selection } = useSelection();
  return readRanks(selection.params).length > 0 ? (
    <MergedTrace run={run} crumb={run} />
  ) : (
    <OneTrace payload={payload} crumb={crumb} />
  );
}
