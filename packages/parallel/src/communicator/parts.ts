/** How a row of elements is divided among ranks: the first `count mod parts` have one more, as checkpoints' `balanced`. */

export interface Part {
  readonly begin: number;
  readonly end: number;
}

export function partsOf(count: number, parts: number): Part[] {
  const [size, larger] = [Math.floor(count / parts), count % parts];
  const begin = (part: number) => part * size + Math.min(part, larger);
  return Array.from({ length: parts }, (_, part) => ({ begin: begin(part), end: begin(part + 1) }));
}
