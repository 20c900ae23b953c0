/** Ten bars: how likely the network thinks each digit. */

const DIGITS = Array.from({ length: 10 }, (_, digit) => digit);

export class Probabilities {
  readonly #rows: readonly { row: HTMLElement; bar: HTMLElement; value: HTMLElement }[];

  constructor(list: HTMLElement) {
    const part = (name: string, text = "") => {
      const made = document.createElement("span");
      made.className = name;
      made.textContent = text;
      return made;
    };
    this.#rows = DIGITS.map((digit) => {
      const row = document.createElement("li");
      const [bar, value] = [part("bar"), part("value")];
      const track = part("track");
      track.append(bar);
      row.append(part("digit", String(digit)), track, value);
      return { row, bar, value };
    });
    list.replaceChildren(...this.#rows.map(({ row }) => row));
    this.show(undefined);
  }

  /** Returns the most likely digit. */
  show(probabilities: ArrayLike<number> | undefined): number {
    const values = Array.from({ length: 10 }, (_, digit) => probabilities?.[digit] ?? 0);
    const best = values.indexOf(Math.max(...values));
    this.#rows.forEach(({ row, bar, value }, digit) => {
      row.classList.toggle("best", probabilities !== undefined && digit === best);
      bar.style.width = `${100 * values[digit]!}%`;
      value.textContent = probabilities === undefined ? "–" : `${Math.round(100 * values[digit]!)} %`;
    });
    return best;
  }
}
