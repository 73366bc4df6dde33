/** The most rows that one export offers (contract: the rows of one export). */
export const EXPORT_ROWS_MAX = 100_000;
