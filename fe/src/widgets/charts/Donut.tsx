import { Popover } from '@mantine/core';
import { arc, pie, type PieArcDatum } from 'd3-shape';
import { useMemo, useState } from 'react';
import { formatCount, formatRatio, plural } from '../../base/format';
import { shortenDistinct } from '../../base/text';
import { Button } from '../inputs/Button';
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
  /** Number of slices; the remaining shares are one slice together. */
  top: number;
  /** One color that gets lighter from slice to slice, or the color of each slice. */
  color: string | ((key: string) => string);
  format: (value: number) => string;
  /** A slice or its entry in the legend was clicked. */
  onPick: (key: string) => void;
  selectedKey?: string | undefined;
}

/** Width of a legend entry without its name, px: one less than in the style sheet, because widths here are rounded. */
const ENTRY_EXTRA_WIDTH = 67;
/** Most remaining shares listed; the table next to the chart has all of them. */
const MAX_LISTED = 200;
/** Width of the list of the remaining shares, px. */
const LIST_WIDTH = 340;
const LIST_PADDING = 24;
const SIZE = 72;
const OUTER_RADIUS = 34;
const INNER_RADIUS = 21;

const arcPath = arc<PieArcDatum<number>>().innerRadius(INNER_RADIUS).outerRadius(OUTER_RADIUS);

/** Return the angles of the slices, with the remaining shares last. */
const arcAngles = (values: number[], remaining: number): PieArcDatum<number>[] =>
  pie<number>().sort(null)([...values, remaining]);

/** A ring of the largest shares with its legend; the remaining shares are listed on a click. */
export function Donut({ title, note, shares, top, color, format, onPick, selectedKey }: Props) {
  const { ref, width } = useWidth<HTMLOListElement>();
  const [listOpen, setListOpen] = useState(false);
  const sorted = useMemo(
    () => shares.filter(share => share.value > 0).sort((a, b) => b.value - a.value),
    [shares],
  );
  const total = sorted.reduce((sum, share) => sum + share.value, 0);
  const largest = sorted.slice(0, top);
  const rest = sorted.slice(top);
  const restValue = rest.reduce((sum, share) => sum + share.value, 0);
  const angles = arcAngles(
    largest.map(share => share.value),
    restValue,
  );
  const slices = largest.map((share, i) => ({
    share,
    path: arcPath(angles[i]!) ?? undefined,
    fill: typeof color === 'string' ? lighten(color, i, largest.length) : color(share.key),
  }));
  const measure = useMemo(() => createLegendMeasure(), []);
  const titles = largest.map(share => share.title);
  const names = width > 0 ? fitNames(titles, width - ENTRY_EXTRA_WIDTH, measure) : titles;
  const listed = listOpen ? rest.slice(0, MAX_LISTED) : [];
  const listedNames = fitNames(
    listed.map(share => share.title),
    LIST_WIDTH - LIST_PADDING - ENTRY_EXTRA_WIDTH,
    measure,
  );
  const describe = (share: Share) =>
    `${share.title}: ${format(share.value)}, ${formatRatio(share.value / total)}`;
  return (
    <figure className={css.donut} data-part="donut">
      <figcaption>
        <strong>{title}</strong> {total > 0 ? (note ?? format(total)) : 'none'}
      </figcaption>
      {/* The legend makes the slices accessible from the keyboard. */}
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
          r={(OUTER_RADIUS + INNER_RADIUS) / 2}
          className={css.rest}
          onClick={() => setListOpen(rest.length > 0)}
          data-legend={
            rest.length > 0
              ? `${plural(rest.length, 'other')}: ${format(restValue)}, ${formatRatio(restValue / total)}`
              : undefined
          }
        />
        <g transform={`translate(${SIZE / 2} ${SIZE / 2})`}>
          {slices.map(({ share, path, fill }) => (
            <path
              key={share.key}
              d={path}
              fill={fill}
              data-legend={describe(share)}
              onClick={() => onPick(share.key)}
            >
              <title>{describe(share)}</title>
            </path>
          ))}
        </g>
      </svg>
      <ol ref={ref}>
        {slices.map(({ share, fill }, i) => (
          <li key={share.key} data-name={share.title}>
            <LegendEntry
              name={share.title}
              shortName={names[i]!}
              fill={fill}
              title={`${share.title}: ${format(share.value)}`}
              ratio={share.value / total}
              pressed={share.key === selectedKey}
              onClick={() => onPick(share.key)}
            />
          </li>
        ))}
        {rest.length > 0 && (
          <li>
            <Popover
              opened={listOpen}
              onChange={setListOpen}
              position="bottom-start"
              shadow="md"
              withinPortal
              trapFocus
              returnFocus
              width={LIST_WIDTH}
            >
              <Popover.Target>
                <Button look="bare" className="dim" title="List them" onClick={() => setListOpen(!listOpen)}>
                  <i className={`dot ${css.remainder}`} />
                  <span className="clip">{plural(rest.length, 'other')}</span>
                  <span className="num">{formatRatio(restValue / total)}</span>
                </Button>
              </Popover.Target>
              <Popover.Dropdown className="menu" data-part="others">
                <ol className={css.others}>
                  {listed.map((share, i) => (
                    <li key={share.key}>
                      <LegendEntry
                        name={share.title}
                        shortName={listedNames[i]!}
                        title={`${share.title}: ${format(share.value)}`}
                        ratio={share.value / total}
                        pressed={share.key === selectedKey}
                        onClick={() => onPick(share.key)}
                      />
                    </li>
                  ))}
                </ol>
                {rest.length > MAX_LISTED && (
                  <p className="dim">
                    and {formatCount(rest.length - MAX_LISTED)} smaller ones, in the table
                  </p>
                )}
              </Popover.Dropdown>
            </Popover>
          </li>
        )}
      </ol>
    </figure>
  );
}

interface LegendEntryProps {
  name: string;
  /** The name cut to fit its line. */
  shortName: string;
  fill?: string;
  title: string;
  ratio: number;
  pressed: boolean;
  onClick: () => void;
}

/** A line of the legend; a screen reader reads the full name. */
function LegendEntry({ name, shortName, fill, title, ratio, pressed, onClick }: LegendEntryProps) {
  return (
    <Button look="bare" aria-pressed={pressed} title={title} onClick={onClick}>
      {fill && <i className="dot" style={{ background: fill }} />}
      <span className="clip" aria-hidden={shortName !== name || undefined}>
        {shortName}
      </span>
      {shortName !== name && <span className="visually-hidden">{name}</span>}
      <span className="num">{formatRatio(ratio)}</span>
    </Button>
  );
}

/** Return the color of slice `index`: lighter from slice to slice, towards the background of either theme. */
function lighten(color: string, index: number, count: number): string {
  const strength = 100 - (index / Math.max(count, 1)) * 72;
  return `color-mix(in srgb, ${color} ${strength}%, var(--sf))`;
}

/** Returns the width of a text, px. */
type MeasureText = (text: string) => number;

/** Fewest letters of a name that is cut in the middle; shorter ones are cut at the end by the style sheet. */
const MIN_LETTERS = 8;
/** Width of the narrowest letter, px. */
const MIN_LETTER_WIDTH = 3;

/** Return the function that measures text in the font of the legend; widths are 0 where there is no canvas. */
function createLegendMeasure(): MeasureText {
  const context = document.createElement('canvas').getContext('2d');
  if (!context) {
    return () => 0;
  }
  const font = getComputedStyle(document.documentElement).getPropertyValue('--font').trim();
  context.font = `11px ${font || 'sans-serif'}`;
  return text => context.measureText(text).width;
}

/** Shorten the names wider than `width` pixels; they stay as they are where fewer than `MIN_LETTERS` would fit. */
export function fitNames(names: readonly string[], width: number, measure: MeasureText): string[] {
  const tooWide = names.map(name => measure(name) > width);
  for (let letters = Math.floor(width / MIN_LETTER_WIDTH); letters >= MIN_LETTERS; letters--) {
    const short = shortenDistinct(names, letters);
    if (short.every((text, i) => !tooWide[i] || measure(text) <= width)) {
      return names.map((name, i) => (tooWide[i] ? short[i]! : name));
    }
  }
  return [...names];
}
