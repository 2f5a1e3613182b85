import type { ModulesPayload } from '../../../api/types';
import { formatDuration, plural } from '../../../base/format';
import { Term } from '../../../widgets/Term';
import { Sentence } from '../../../widgets/Sentence';

/** Device work of no module. */
export function Rest({
  payload,
}: {
  payload: Pick<ModulesPayload, 'outside' | 'unlinked' | 'has_device' | 'has_backward' | 'reasons'>;
}) {
  if (!payload.has_device) {
    return payload.has_backward ? null : <Sentence text={payload.reasons.backward ?? []} />;
  }
  const { outside, unlinked } = payload;
  return (
    <>
      outside any module {formatDuration(outside.device_ns)} in {plural(outside.events, 'device event')} · not
      linked {formatDuration(unlinked.device_ns)} in {plural(unlinked.events, 'device event')}{' '}
      <Term id="not_linked" />
    </>
  );
}
