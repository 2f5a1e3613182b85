// The legend: what the colors of slices mean.
import { Popover } from '@mantine/core';
import { useMemo } from 'react';
import type { TraceColors, TracePayload } from '../../../api/types';
import { CATEGORY_TITLE, type Category } from '../../../base/category';
import { familyColor } from '../../../base/family';
import { classColor, distinctColor, type ColorBy } from '../../../timeline/draw/colors';
import type { Tile } from '../../../timeline/tiles/tile';
import { Button } from '../../../widgets/inputs/Button';
import css from './Tools.module.css';

export interface LegendEntry {
  code: number;
  text: string;
  /** CSS color. */
  color: string;
}

const CLASS_TITLE: Record<string, string> = {
  ...CATEGORY_TITLE,
  annotation: 'Annotation',
  python: 'Python',
  sync: 'Synchronization',
};

const DEVICE_CLASSES: readonly string[] = ['kernel', 'memcpy', 'memset', 'runtime', 'sync'];

/** Return what each color means; empty if names are colored, as there are more names than colors. */
export function legendEntries(
  by: ColorBy,
  payload: TracePayload,
  colors: TraceColors | undefined,
): LegendEntry[] {
  if (by === 'name') {
    return [];
  }
  const texts = by === 'class' ? payload.classes : (colors?.texts ?? []);
  const device = payload.groups.some(group => group.kind === 'device');
  return (
    texts
      .map((text, code) => ({
        code,
        text: by === 'class' ? (CLASS_TITLE[text as Category] ?? text) : text,
        color:
          by === 'class' ? classColor(text) : by === 'family' ? familyColor(text) : distinctColor(code - 1),
      }))
      .filter(entry => entry.text !== '')
      // Without a device there is no device work to explain.
      .filter(entry => by !== 'class' || device || !DEVICE_CLASSES.includes(texts[entry.code]!))
  );
}

/** Most entries beside the timeline; the others are in a menu. */
const MAX_ENTRIES = 8;

interface LegendProps {
  by: ColorBy;
  payload: TracePayload;
  colors?: TraceColors;
  /** Sorts the entries by busy time; those without any go to the menu. */
  tile?: Tile | undefined;
  /** Searches for a query; without it the entries can't be clicked. */
  onFind?: (query: string) => void;
}

/** What the colors mean; clicking a kernel family finds its slices. */
export function Legend({ by, payload, colors, tile, onFind }: LegendProps) {
  const filled = useMemo(
    () => (by === 'class' && tile ? timeByColor(tile) : new Map<number, number>()),
    [by, tile],
  );
  if (by === 'name') {
    return <span className="dim">each name keeps its color; different names may share one</span>;
  }
  const entries = legendEntries(by, payload, colors).toSorted(
    (a, b) => (filled.get(b.code) ?? 0) - (filled.get(a.code) ?? 0),
  );
  // The first text is for slices without a family.
  const findable = (entry: LegendEntry) => by === 'family' && entry.code !== 0;
  const seen = filled.size > 0 ? entries.filter(entry => filled.has(entry.code)).length : MAX_ENTRIES;
  const first = Math.min(seen, MAX_ENTRIES);
  const rest = entries.slice(first);
  return (
    // Sorted anew, the entries are others: nothing is seen to move.
    <span key={filled.size > 0 ? 'sorted' : 'unsorted'} className={css.legend} data-part="legend">
      {entries.slice(0, first).map(entry => (
        <LegendItem key={entry.code} entry={entry} find={findable(entry) ? onFind : undefined} />
      ))}
      {rest.length > 0 && (
        <Popover position="bottom-end" shadow="md" withinPortal>
          <Popover.Target>
            <Button look="text">{rest.length} more</Button>
          </Popover.Target>
          <Popover.Dropdown className={`menu ${css.menu}`} data-part="trace-menu">
            {rest.map(entry => (
              <LegendItem key={entry.code} entry={entry} find={findable(entry) ? onFind : undefined} />
            ))}
          </Popover.Dropdown>
        </Popover>
      )}
    </span>
  );
}

function LegendItem({ entry, find }: { entry: LegendEntry; find?: (query: string) => void }) {
  const shown = (
    <span className="clip" title={entry.text}>
      <i className="dot" style={{ background: entry.color }} /> {entry.text}
    </span>
  );
  return find ? (
    <Button look="text" title={`Find ${entry.text}`} onClick={() => find(`family:${entry.text}`)}>
      {shown}
    </Button>
  ) : (
    shown
  );
}

/** Return the busy time of the boxes of each color, ns; nested boxes count as well. */
function timeByColor({ color, busy }: Tile): Map<number, number> {
  const times = new Map<number, number>();
  color.forEach((code, i) => times.set(code, (times.get(code) ?? 0) + busy[i]!));
  return times;
}
