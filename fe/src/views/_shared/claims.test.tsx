import golden from '../../../../tests/golden/payloads/modules.json';
import kernels from '../../../../tests/golden/payloads/kernels.json';
import type { ModuleRow } from '../../api/types';
import { tryClaims } from '../../testing/claims';
import { textsOf } from '../../testing/view';
import { ModuleDetail } from './modules/ModuleDetail';
import { ModuleFlameGraph } from './modules/ModuleFlameGraph';
import { DurationHistogram } from './rows/DurationHistogram';

const [module] = golden.modules.rows;
const detail = (changes: object, total: number) =>
  textsOf(
    <ModuleDetail
      tab="modules"
      path={[{ ...module!, ...changes } as unknown as ModuleRow]}
      hasDevice
      onPlace={() => undefined}
    />,
    { 'modules/instances': { ...golden['modules/instances'], total, rows: [] } },
  );

const flame = (total_ns: number) =>
  textsOf(<ModuleFlameGraph tab="modules" hasDevice onPlace={() => undefined} />, {
    'modules/flame': {
      ...golden['modules/flame'],
      total_ns,
      frames: golden['modules/flame'].frames.map(frame => ({
        ...frame,
        value_ns: total_ns && frame.value_ns,
      })),
    },
  });

const durations = (far_out: number) =>
  textsOf(
    <DurationHistogram
      instances={{ ...kernels['kernels/instances'], far_out } as never}
      noun="call"
      of="gemm"
      color="red"
      onOutlier={() => undefined}
    />,
  );

tryClaims('views/_shared', {
  ', {} of all device time': {
    falseIf: 'its share is unknown',
    holds: detail({}, 1),
    other: detail({ device_share: null }, 1),
  },
  'A graph replayed this module: the host didn’t call it.': {
    falseIf: 'the host called it, and only the calls are not recorded',
    holds: detail({ host_total_ns: null }, 0),
    other: detail({}, 0),
  },
  'Only the operators of this module are recorded, not its calls.': {
    falseIf: 'its calls are recorded',
    holds: detail({}, 0),
    other: detail({}, 1),
  },
  'No {} time was recorded in modules.{}': { falseIf: 'some was', holds: flame(0), other: flame(5000) },
  'outside any module {} in {} · not linked {} in {} {}': {
    falseIf: 'no device work was recorded',
    triedBy: 'src/views/modules/index.test.tsx: shows the tree of modules with the work outside any module',
  },
  'It launched no device work.': {
    falseIf: 'it launched some',
    triedBy:
      'tests/views/modules/test_modules.py::test_families_of_the_kernels_in_a_module_sum_to_its_device_time',
  },
  '{} far above the rest; click a mark to show the {} on the timeline.': {
    falseIf: 'none is',
    holds: durations(2),
    other: durations(0),
  },
  'FLOPs or bytes of some of its calls come from hardware counters.': {
    falseIf: 'all are modeled',
    triedBy: 'src/views/roofline/index.test.tsx: marks rows whose work was measured',
  },
});
