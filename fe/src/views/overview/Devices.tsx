import type { Device, Overview } from '../../api/types';
import type { TermId } from '../../base/glossary';
import { deviceName, formatBytes, formatRatio } from '../../base/format';
import { useSelection } from '../../state/selection';
import { Button } from '../../widgets/inputs/Button';
import { Meter } from '../../widgets/charts/Meter';
import { Panel } from '../../widgets/Panel';
import { Term, Tip } from '../../widgets/Term';
import { plainText } from '../../base/text';
import css from './Devices.module.css';

/** Figures of a device, and the view that shows what each is made of. */
const METERS = [
  ['utilization', 'GPU utilization', 'idle'],
  ['computing', 'of it computing', 'kernels'],
  ['sm_efficiency', 'SM efficiency, est.', 'kernels'],
  ['achieved_occupancy', 'Achieved occupancy, est.', 'kernels'],
  ['tensor_core_ratio', 'Tensor Core share', 'kernels'],
] as const satisfies readonly (readonly [TermId, string, string])[];

export function DeviceCard({ device }: { device: Device }) {
  const { select } = useSelection();
  const communicates = device.computing !== device.utilization;
  return (
    <Panel title={deviceName(device.kind, device.id)} note={device.name ?? device.kind}>
      <dl className={css.meters}>
        {METERS.filter(([key]) => key !== 'computing' || communicates).map(([key, title, view]) => {
          const ratio = device[key];
          const reason = device.reasons[key];
          return (
            <div key={key}>
              <dt>
                {title}
                <Term id={key} />
              </dt>
              <dd>
                {ratio === null || ratio === undefined ? (
                  <span className={`dim ${css.unknown}`}>
                    not recorded
                    {reason && <Tip label="Why?" entry={{ title, text: `${plainText(reason)}.` }} />}
                  </span>
                ) : (
                  <>
                    <Meter ratio={ratio} color="var(--c-kernel)" />
                    <span className="num">
                      {reason && (
                        <Tip label="About this number" entry={{ title, text: `${plainText(reason)}.` }} />
                      )}
                      <Button
                        look="link"
                        title="Show it"
                        onClick={() => select({ view, params: { device: String(device.id) } })}
                      >
                        {key === 'tensor_core_ratio' && device.tensor_cores.unknown_ns > 0 && '≥ '}
                        {formatRatio(ratio)}
                      </Button>
                    </span>
                  </>
                )}
              </dd>
            </div>
          );
        })}
      </dl>
      <dl className={css.facts}>
        <Fact name="Memory" value={device.memory_bytes && formatBytes(device.memory_bytes)} />
        <Fact name="Multiprocessors" value={device.multiprocessors} />
        <Fact name="Compute capability" value={device.compute_capability} />
        <Fact name="Streams" value={device.streams} />
      </dl>
    </Panel>
  );
}

const RECORDED: Record<string, string> = {
  host: 'host operators',
  device: 'device work',
  python: 'Python stacks',
  shapes: 'input shapes',
  memory: 'memory',
};

export function Configuration({ overview }: { overview: Overview }) {
  const { configuration } = overview;
  const recorded = Object.entries(configuration.recorded);
  const list = (wanted: boolean) =>
    recorded
      .filter(([, on]) => on === wanted)
      .map(([key]) => RECORDED[key] ?? key)
      .join(', ');
  const rank =
    configuration.rank === null
      ? null
      : `${configuration.rank}${configuration.world_size ? ` of ${configuration.world_size}` : ''}`;
  return (
    <Panel title="Configuration">
      <dl className={`${css.facts} ${css.one}`}>
        <Fact name="Device type" value={configuration.device_type} />
        {rank !== null && <Fact name="Rank" value={rank} />}
        {configuration.backend && <Fact name="Backend" value={configuration.backend} />}
        <Fact name="Recorded" value={list(true) || 'nothing'} />
        {list(false) && <Fact name="Not recorded" value={list(false)} />}
      </dl>
      {configuration.recorder && <Recorder recorder={configuration.recorder} />}
    </Panel>
  );
}

type RecorderConfiguration = NonNullable<Overview['configuration']['recorder']>;

/** Shows what the configuration beside the trace asked the device's recorder for, and what that leaves out. */
function Recorder({ recorder }: { recorder: RecorderConfiguration }) {
  return (
    <section aria-label={`Requested by ${recorder.file}`}>
      <h3>
        Requested by <code>{recorder.file}</code>
      </h3>
      <dl className={`${css.facts} ${css.one}`}>
        {Object.entries(recorder.asked).map(([name, value]) => (
          <Fact key={name} name={name} value={value} />
        ))}
      </dl>
      {[...recorder.contradictions, ...recorder.left_out].map(sentence => (
        <p key={sentence}>{sentence}</p>
      ))}
    </section>
  );
}

function Fact({ name, value }: { name: string; value: string | number | null | undefined }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        {value === null || value === undefined || value === '' ? (
          <span className="dim">not recorded</span>
        ) : (
          value
        )}
      </dd>
    </div>
  );
}
