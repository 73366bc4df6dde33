import { runAudit } from '../../db/audit.ts';
import { openDatabase } from '../../db/connection.ts';

declare const self: Worker;

/** Audits the database of the path that it is sent, beside the event loop: the queries read every ledger row. */
self.onmessage = (event: MessageEvent<string>) => {
  const db = openDatabase(event.data);
  try {
    self.postMessage(runAudit(db));
  } finally {
    db.$client.close();
  }
};
