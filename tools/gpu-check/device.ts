/** Says which GPU opens, or why none does. */
import { openCudaBackend } from "@opt/kernels-cuda";

try {
  const { gpu } = openCudaBackend();
  const { total } = gpu.memory();
  console.log(
    `${gpu.name}, sm_${gpu.architecture}, ${gpu.multiprocessors} multiprocessors, ${Math.round(total / 2 ** 30)} GiB`,
  );
} catch (error) {
  console.log((error as Error).message);
  process.exitCode = 1;
}
