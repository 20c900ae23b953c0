/** Every kind of kernel and the file that writes it. */
import type { Kind } from "@opt/core/backend";
import { rule } from "../emit/rule";
import type { KernelSource } from "../kernel";
import { copy } from "./copy";
import { matmul } from "./matmul";
import { reduce } from "./reduce";
import { sumSquares } from "./sum-squares";

export const KERNELS: { readonly [K in Kind]?: KernelSource<K> } = { copy, matmul, reduce, rule, sumSquares };
