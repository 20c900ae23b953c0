/** Tables in text, as spreadsheets write them (RFC 4180). */
import { check, checkOptions, OptError, show } from "@opt/core";

export interface CsvOptions {
  /** One character between two cells. Default ",". */
  readonly separator?: string;
}

const WHERE = "fromCsv";

/**
 * The columns of a CSV text, by the names in its first line. A column of numbers is a Float32Array, in which an empty cell is NaN. Any
 * other column is a list of texts. Blank lines are left out.
 *
 * @throws OptError BAD_ARGUMENT; CORRUPT for a line with more or fewer cells than the first, or an open quote; DUPLICATE for two columns of one name
 * @example
 * const { length, kind } = fromCsv("length,kind\n5.1,setosa\n7,virginica\n"); // Float32Array [5.1, 7], ["setosa", "virginica"]
 */
export function fromCsv(text: string, options: CsvOptions = {}): Record<string, Float32Array | string[]> {
  checkOptions(WHERE, options, { separator: "string" });
  const { separator = "," } = options;
  check(
    typeof text === "string",
    "BAD_ARGUMENT",
    WHERE,
    () => `needs the text of a file, got ${show(text)}.`,
    "For example await file.text().",
  );
  const isSeparator = separator.length === 1 && !'"\r\n'.includes(separator);
  check(
    isSeparator,
    "BAD_ARGUMENT",
    WHERE,
    () => `separator must be one character, got ${show(separator)}.`,
    'For example "\\t".',
  );
  const [names = [], ...rows] = recordsOf(text.replace(/^\uFEFF/, ""), separator);
  const twice = names.find((name, i) => names.indexOf(name) < i);
  check(
    twice === undefined,
    "DUPLICATE",
    WHERE,
    () => `columns must have different names, got ${show(twice)} twice.`,
    "Rename one in the first line.",
  );
  const odd = rows.findIndex((row) => row.length !== names.length);
  check(
    odd < 0,
    "CORRUPT",
    WHERE,
    () => `each row must have ${names.length} cells, got ${rows[odd]?.length} in row ${odd + 1}.`,
    "Is the separator right?",
  );
  return Object.fromEntries(names.map((name, i) => [name, columnOf(rows.map((row) => row[i]!))]));
}

/** The cells of each line that is not blank. */
function recordsOf(text: string, separator: string): string[][] {
  const mark = separator.replace(/\W/, "\\$&");
  const cell = new RegExp(`(?:"([^"]*(?:""[^"]*)*)"|([^"${mark}\\r\\n]*))(${mark}|\\r?\\n|$)`, "y");
  const records: string[][] = [[]];
  for (let end: string | undefined; end !== ""; ) {
    const at = cell.lastIndex;
    const found = cell.exec(text);
    if (found === null) {
      const got = show(text.slice(at, at + 20));
      const cure = 'Write a quote inside of a cell as "".';
      throw new OptError("CORRUPT", WHERE, `a cell must be plain or whole in quotes, got ${got}.`, cure);
    }
    const [, quoted, plain = ""] = found;
    end = found[3]!;
    records.at(-1)!.push(quoted?.replaceAll('""', '"') ?? plain);
    if (end.endsWith("\n")) records.push([]);
  }
  return records.filter((record) => record.length > 1 || record[0] !== "");
}

function columnOf(cells: string[]): Float32Array | string[] {
  const numbers = Float32Array.from(cells, (cell) => (cell.trim() === "" ? Number.NaN : Number(cell)));
  return numbers.every((number, i) => !Number.isNaN(number) || /^\s*(nan)?\s*$/i.test(cells[i]!)) ? numbers : cells;
}
