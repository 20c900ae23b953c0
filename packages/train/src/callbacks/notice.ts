/** Tells what a callback has done: on `process.stderr`, as progress does, or in the console of a page. */
export function notice(where: string, text: string): void {
  const { stderr } = (globalThis as { process?: { stderr?: { write(text: string): unknown } } }).process ?? {};
  const line = `[${where}] ${text}`;
  if (stderr) stderr.write(`${line}\n`);
  else console.info(line);
}
