/** The table of runs: a sample of each line, its settings and numbers, and a button that takes it out. */
import { sampleOf } from "./chart";
import { labelOf, percent, type Run, smoothed } from "./run";

const COLUMNS = ["", "rate", "", "steps", "loss", "test"];

export class Legend {
  /** Which rows stand there: they are made anew only when these change, so that a button keeps its focus. */
  #shown = "";

  constructor(
    private readonly target: HTMLTableSectionElement,
    private readonly remove: (run: Run) => void,
  ) {}

  show(runs: readonly Run[], current: Run): void {
    const key = runs.map((run) => `${run.number}${run === current ? "*" : ""}`).join();
    if (key !== this.#shown) this.target.replaceChildren(...runs.map((run) => this.#rowOf(run, run === current)));
    this.#shown = key;
    runs.forEach((run, i) => {
      const cells = this.target.rows[i]!.querySelectorAll("td");
      textsOf(run).forEach((text, column) => {
        if (cells[column]!.textContent !== text) cells[column]!.textContent = text;
      });
    });
  }

  #rowOf(run: Run, isCurrent: boolean): HTMLTableRowElement {
    const row = document.createElement("tr");
    const name = document.createElement("th");
    name.scope = "row";
    name.append(sampleOf(run), ` ${run.number + 1}`);
    const cells = [...COLUMNS, ""].map((column) => {
      const cell = document.createElement("td");
      if (column !== "") cell.dataset.of = column; // on a phone the head of the table is not shown
      return cell;
    });
    row.append(name, ...cells);
    if (isCurrent) {
      row.setAttribute("aria-current", "true");
      cells.at(-1)!.textContent = "now";
      return row;
    }
    const button = document.createElement("button");
    button.type = "button";
    button.className = "small";
    button.textContent = "Remove";
    button.setAttribute("aria-label", `Remove run ${run.number + 1}`);
    button.addEventListener("click", () => this.remove(run));
    cells.at(-1)!.append(button);
    return row;
  }
}

function textsOf(run: Run): string[] {
  const loss = run.losses.length > 0 ? smoothed(run.losses).at(-1)!.toFixed(3) : "–";
  const test = run.measured.length > 0 ? percent(run.measured.at(-1)!.accuracy) : "–";
  return [run.optimizer, String(run.lr), labelOf(run.device), run.losses.length.toLocaleString("en"), loss, test];
}
