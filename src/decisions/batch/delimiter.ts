/** The characters that separate cells in files that people call CSV. */
const DELIMITERS = [',', ';', '\t'] as const;

/** Returns the delimiter that is most frequent in the first line of a file. */
export function likeliestDelimiter(first_line: string): string {
  const count = (delimiter: string) => first_line.split(delimiter).length;
  return DELIMITERS.reduce((best, delimiter) => (count(delimiter) > count(best) ? delimiter : best));
}
