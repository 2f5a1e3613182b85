import { arc, pie, type PieArcDatum } from 'd3-shape';
import { Popover } from '@mantine/core';
import { useMemo, useState } from 'react';
import { Button } from '../inputs/Button';
import { formatCount, formatRatio, plural } from '../../base/format';
import { fitting, legendMeasure } from './fitting';
import { useWidth } from './useWidth';
import css from './Donut.module.css';

export interface Share {
  key: string;
  title: string;
  value: number;
}

interface Props {
  title: string;
  note?: string;
  shares: Share[];
  /** How many get a part of their own; the rest are one part. */
  top: number;
  /** One that gets lighter from part to part, or that of each part. */
  color: string | ((key: string) => string);
  format: (value: number) => string;
  /** Opens what a part counts. */
  onPick: (key: string) => void;
  selectedKey?: string | undefined;
}

/** Pixels that a line needs beside its name: one less than the style sheet asks for, as widths are whole here. */
const BESIDE = 67;

/** Of the others, how many are named; the table beside the rings has them all. */
const NAMED = 200;

/** Width of the list of the others, px. */
const OTHERS = 340;
const PADDING = 24;
const SIZE = 72;
const OUTER = 34;
const INNER = 21;

const outline = arc<PieArcDatum<number>>().innerRadius(INNER).outerRadius(OUTER);

/** The angles of the parts; what is left of the ring is for the others. */
const ring = (values: number[], others: number): PieArcDatum<number>[] =>
  pie<number>().sort(null)([...values, others]);

/** A ring of the largest shares with its legend; all parts together are the whole. */
export function Donut({ title, note, shares, top, color, format, onPick, selectedKey: picked }: Props) {
  const { ref, width } = useWidth<HTMLOListElement>();
  const [listed, setListed] = useState(false);
  const sorted = useMemo(
    () => shares.filter(share => share.value > 0).sort((a, b) => b.value - a.value),
    [shares],
  );
  const total = sorted.reduce((sum, share) => sum + share.value, 0);
  const parts = sorted.slice(0, top);
  const rest = sorted.slice(top);
  const others = rest.reduce((sum, share) => sum + share.value, 0);
  const slices = ring(
    parts.map(part => part.value),
    others,
  );
  const arcs = parts.map((part, i) => ({
    part,
    path: outline(slices[i]!) ?? undefined,
    fill: typeof color === 'string' ? shade(color, i, parts.length) : color(part.key),
  }));
  const measure = useMemo(() => legendMeasure(), []);
  const titles = parts.map(part => part.title);
  const names = width > 0 ? fitting(titles, width - BESIDE, measure) : titles;
  const listing = listed ? rest.slice(0, NAMED) : [];
  const listingNames = fitting(
    listing.map(part => part.title),
    OTHERS - PADDING - BESIDE,
    measure,
  );
  const said = (part: Share) => `${part.title}: ${format(part.value)}, ${formatRatio(part.value / total)}`;
  return (
    <figure className={css.donut} data-part="donut">
      <figcaption>
        <strong>{title}</strong> {total > 0 ? (note ?? format(total)) : 'none'}
      </figcaption>
      {/* Its keys are those of the legend. */}
      <svg
        width={SIZE}
        height={SIZE}
        viewBox={`0 0 ${SIZE} ${SIZE}`}
        role="img"
        aria-label={title}
        data-picture={total > 0 ? `${title}, ${format(total)}` : `${title}: none`}
      >
        <circle
          cx={SIZE / 2}
          cy={SIZE / 2}
          r={(OUTER + INNER) / 2}
          className={css.rest}
          onClick={() => setListed(rest.length > 0)}
          data-legend={
            rest.length > 0
              ? `${plural(rest.length, 'other')}: ${format(others)}, ${formatRatio(others / total)}`
              : undefined
          }
        />
        <g transform={`translate(${SIZE / 2} ${SIZE / 2})`}>
          {arcs.map(({ part, path, fill }) => (
            <path
              key={part.key}
              d={path}
              fill={fill}
              data-legend={said(part)}
              onClick={() => onPick(part.key)}
            >
              <title>{said(part)}</title>
            </path>
          ))}
        </g>
      </svg>
      <ol ref={ref}>
        {arcs.map(({ part, fill }, i) => (
          <li key={part.key} data-name={part.title}>
            <Part
              name={part.title}
              short={names[i]!}
              fill={fill}
              title={`${part.title}: ${format(part.value)}`}
              ratio={part.value / total}
              pressed={part.key === picked}
              onClick={() => onPick(part.key)}
            />
          </li>
        ))}
        {rest.length > 0 && (
          <li>
            <Popover
              opened={listed}
              onChange={setListed}
              position="bottom-start"
              shadow="md"
              withinPortal
              trapFocus
              returnFocus
              width={OTHERS}
            >
              <Popover.Target>
                <Button look="bare" className="dim" title="List them" onClick={() => setListed(!listed)}>
                  <i className={`dot ${css.remainder}`} />
                  <span className="clip">{plural(rest.length, 'other')}</span>
                  <span className="num">{formatRatio(others / total)}</span>
                </Button>
              </Popover.Target>
              <Popover.Dropdown className="menu" data-part="others">
                <ol className={css.others}>
                  {listing.map((part, i) => (
                    <li key={part.key}>
                      <Part
                        name={part.title}
                        short={listingNames[i]!}
                        title={`${part.title}: ${format(part.value)}`}
                        ratio={part.value / total}
                        pressed={part.key === picked}
                        onClick={() => onPick(part.key)}
                      />
                    </li>
                  ))}
                </ol>
                {rest.length > NAMED && (
                  <p className="dim">and {formatCount(rest.length - NAMED)} with less, in the table</p>
                )}
              </Popover.Dropdown>
            </Popover>
          </li>
        )}
      </ol>
    </figure>
  );
}

interface PartProps {
  name: string;
  /** What of it fits into the line. */
  short: string;
  fill?: string;
  title: string;
  ratio: number;
  pressed: boolean;
  onClick: () => void;
}

/** A line of the legend; who does not see it hears the whole name. */
function Part({ name, short, fill, title, ratio, pressed, onClick }: PartProps) {
  return (
    <Button look="bare" aria-pressed={pressed} title={title} onClick={onClick}>
      {fill && <i className="dot" style={{ background: fill }} />}
      <span className="clip" aria-hidden={short !== name || undefined}>
        {short}
      </span>
      {short !== name && <span className="spoken">{name}</span>}
      <span className="num">{formatRatio(ratio)}</span>
    </Button>
  );
}

/** Lighter from part to part, towards the surface, so that both themes keep the order. */
function shade(color: string, index: number, count: number): string {
  const strength = 100 - (index / Math.max(count, 1)) * 72;
  return `color-mix(in srgb, ${color} ${strength}%, var(--sf))`;
}
