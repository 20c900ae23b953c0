"""Makes the folders beside it with orbax-checkpoint 0.12: python make.py"""
import os
import shutil
import tempfile
os.environ["XLA_FLAGS"]="--xla_force_host_platform_device_count=4"
import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
out = os.path.dirname(os.path.abspath(__file__))
mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("x", "y"))


def sharded(array, *axes):
    return jax.device_put(array, NamedSharding(mesh, P(*axes)))


tree = {
    "params": {
        "w": sharded(jnp.arange(24, dtype=jnp.float32).reshape(4, 6), "x", "y"),
        "b": sharded(jnp.arange(4).astype(jnp.bfloat16), "y"),
    },
    "step": jnp.int32(5),
    "lr": 0.5,
    "name": "run",
}
for name, options in (("zarr2", {}), ("zarr3", {"use_zarr3": True})):
    saved = os.path.join(tempfile.mkdtemp(), name)
    ocp.Checkpointer(ocp.PyTreeCheckpointHandler(**options)).save(saved, tree)
    shutil.rmtree(f"{out}/{name}", ignore_errors=True)
    os.makedirs(f"{out}/{name}/d")
    for file in ["_METADATA", "manifest.ocdbt", "_strings.json", *(f"d/{file}" for file in os.listdir(f"{saved}/d"))]:
        shutil.copy(f"{saved}/{file}", f"{out}/{name}/{file}")
