/** The most rows of one export (contract: the rows of one export). */
export const EXPORT_ROWS_MAX = 100_000;
