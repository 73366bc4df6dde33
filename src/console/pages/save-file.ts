/** Gives the reader a file with these parts as its text. */
export function saveFile(parts: Iterable<string>, name: string): void {
  const url = URL.createObjectURL(new Blob([...parts]));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  // The browser has taken the content by the next task.
  setTimeout(() => URL.revokeObjectURL(url));
}
