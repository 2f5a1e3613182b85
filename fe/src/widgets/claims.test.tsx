import { tryClaims } from '../testing/claims';
import { textsOf } from '../testing/view';
import { HeatMap } from './charts/HeatMap';
import { CellContent } from './table/columns';
import { DataTable } from './table/DataTable';
import { createMatcher } from './table/search';

const nothing = () => undefined;

const table = (rows: { name: string }[], text: string) =>
  textsOf(
    <DataTable
      name="rows"
      noun="row"
      rows={rows}
      columns={[{ id: 'name', title: 'Name', kind: 'text', value: row => row.name }]}
      rowKey={row => row.name}
      sort={undefined}
      onSort={nothing}
      search={{ text, regex: false }}
      onSearch={nothing}
      placeholder="Filter"
    />,
  );

const cell = (reason?: string) =>
  textsOf(
    <CellContent
      column={{ id: 'x', title: 'X', kind: 'count', value: () => null, ...(reason && { reason }) }}
      row={{}}
    />,
  );

const map = (columns: string[], log = false) =>
  textsOf(
    <HeatMap
      title="map"
      rows={['a']}
      columns={columns}
      values={[columns.map(() => 5)]}
      max={5}
      color="--c-late"
      format={String}
      log={log}
    />,
  );
const MANY = Array.from({ length: 200 }, (_, i) => String(i));

tryClaims(
  'widgets',
  {
    '; log scale, lightest up to {}, strongest at {}': {
      falseIf: 'the scale is linear',
      holds: map(MANY, true),
      other: map(MANY),
    },
    'No values to show.': { falseIf: 'there is one', holds: map([]), other: map(['0']) },
    'Nothing to show.': {
      falseIf: 'a search hides all rows',
      holds: table([], ''),
      other: table([{ name: 'a' }], 'nobody'),
    },
    'No matches for “{}”. Show all': {
      falseIf: 'there are no rows',
      holds: table([{ name: 'a' }], 'nobody'),
      other: table([], 'nobody'),
    },
    'Not recorded in this trace.': {
      falseIf: 'there is another reason',
      holds: cell(),
      other: cell('It has no FLOPs.'),
    },
    'Not a regular expression: {}': {
      falseIf: 'it is one',
      holds: () => createMatcher({ text: '(', regex: true }).error ?? '',
      other: () => createMatcher({ text: '()', regex: true }).error ?? '',
    },
  },
  {
    '{path} and {line} are filled in. Leave it empty to copy paths instead.': 'how to fill in a field',
    'Arrow keys move to the caller, the first call, and the siblings; Enter zooms in, Escape zooms out.':
      'what keys do',
  },
);
