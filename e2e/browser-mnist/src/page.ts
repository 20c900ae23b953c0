/** The page's elements by their ids, and what it says. */

export const element = <E extends Element = HTMLElement>(id: string): E => document.getElementById(id) as unknown as E;
export const button = (id: string): HTMLButtonElement => element<HTMLButtonElement>(id);

export function show(id: string, text: string): void {
  const target = element(id);
  if (target.textContent !== text) target.textContent = text;
}

/** What the page does, in words. What went wrong before has been read by now; its room stays, so that nothing moves under a click. */
export function say(text: string): void {
  element("problem").classList.add("read");
  show("message", text);
}

/** What went wrong, in words. */
export function complain(error: unknown): void {
  const text = error instanceof Error ? error.message : String(error);
  show("problem", `${text.charAt(0).toUpperCase()}${text.slice(1)}`);
  element("problem").classList.remove("read");
}

export function showProgress(share: number | undefined): void {
  const bar = element<HTMLProgressElement>("progress");
  bar.hidden = share === undefined;
  if (share !== undefined && Number.isFinite(share)) bar.value = share;
}
