import { Answer } from '../../widgets/Answer';
import { Panel } from '../../widgets/Panel';

type Json = string | number | boolean | null | Json[] | { [key: string]: Json };

/** A view that this page doesn't know, because the server is newer: its payload as plain tables. */
export default function GenericView({
  payload,
  crumb,
  title,
}: {
  payload: Json;
  crumb: string;
  title: string;
}) {
  const entries =
    payload && typeof payload === 'object' && !Array.isArray(payload) ? Object.entries(payload) : [];
  return (
    <>
      <Answer
        crumb={crumb}
        why="This page is older than the server, so it shows the raw values in base units."
      >
        {title}
      </Answer>
      {entries.map(([key, value]) => (
        <Panel key={key} title={key}>
          {Array.isArray(value) && value.length > 0 && typeof value[0] === 'object' ? (
            <Rows rows={value as Record<string, Json>[]} />
          ) : (
            <pre>{JSON.stringify(value, null, 1)}</pre>
          )}
        </Panel>
      ))}
    </>
  );
}

/** Most rows of a list that are drawn. */
const MAX_ROWS = 500;

function Rows({ rows }: { rows: Record<string, Json>[] }) {
  const columns = Object.keys(rows[0] ?? {});
  return (
    <div className="scroll">
      <table>
        <thead>
          <tr>
            {columns.map(column => (
              <th key={column}>{column}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, MAX_ROWS).map(row => (
            <tr key={JSON.stringify(row)}>
              {columns.map(column => (
                <td key={column}>
                  {typeof row[column] === 'object' ? JSON.stringify(row[column]) : String(row[column])}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
