import type { ModulesPayload } from '../../api/types';
import { ModulesPage } from '../_shared/modules/ModulesPage';
import { CallTree } from './CallTree';

export default function ModulesView({ payload, crumb }: { payload: ModulesPayload; crumb: string }) {
  return (
    <ModulesPage
      tab="modules"
      name="modules"
      payload={payload}
      crumb={crumb}
      shows={[
        { name: 'table', title: 'Table', content: 'tree' },
        { name: 'flame', title: 'Flame graph', content: 'flame' },
        { name: 'calls', title: 'Call tree', content: <CallTree hasDevice={payload.has_device} /> },
      ]}
      first="table"
    />
  );
}
