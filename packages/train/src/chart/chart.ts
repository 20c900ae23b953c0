/** What a chart shows: its axes and series. Every picture of numbers in pages, reports and the benchmark is one. */

export interface Axis {
  /** What it shows, with its unit: "step", "loss", "milliseconds". */
  readonly label: string;
  /** A logarithmic scale. The label says so. Default false. */
  readonly log?: boolean;
  /** From and to. By default what the values need. */
  readonly range?: readonly [number, number];
  /** Where numbers stand. By default at round ones. */
  readonly ticks?: readonly number[];
  /** Shares as percentages. Default false. */
  readonly percent?: boolean;
  /** Rows from the top, in place of numbers: for horizontal bars. */
  readonly rows?: readonly string[];
}

export interface Series {
  readonly name: string;
  /** By default 1, 2, 3 ... Bars of a histogram: their edges, one more than `y`. */
  readonly x?: ArrayLike<number>;
  /** Values that are no numbers leave gaps. Bars of an axis of rows: the row. */
  readonly y: ArrayLike<number>;
  /** Default "line". */
  readonly as?: "line" | "points" | "bars";
  /** A number of the palette, "faint", or a color of CSS. Default: its place among the series. */
  readonly color?: number | string;
  /** Text beside the last point, or beside each bar. */
  readonly labels?: readonly string[];
}

export interface Chart {
  readonly title: string;
  readonly x: Axis;
  readonly y: Axis;
  readonly series: readonly Series[];
  /** Pixels. Default 640 by 320. */
  readonly width?: number;
  readonly height?: number;
  /** Shows the title and a second line above the picture. Default: the title is for screen readers alone. */
  readonly heading?: string;
  /** Whether the names stand above. By default where there is more than one series. */
  readonly legend?: boolean;
  /** A dashed vertical line. */
  readonly rule?: number;
  /** Colors of a file that stands alone. By default those of the page or system around it. */
  readonly scheme?: "light" | "dark";
}

export const xOf = ({ x }: Series, i: number): number => x?.[i] ?? i + 1;
