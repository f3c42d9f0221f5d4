"""NumPyro, four parallel chains of its funnel and of its Bayesian network: what `MCMC.run` maps over devices."""

import functools

import jax
from checkouts import script
from numpyro.infer import MCMC, NUTS


def chains(model, samples, key, *args):
    """What `run` maps over devices, and its inputs."""
    mcmc = MCMC(NUTS(model), num_warmup=10, num_samples=samples, num_chains=4)
    fields = (mcmc._sample_field, *mcmc._default_fields)
    mcmc._args, mcmc._kwargs = args, {}
    one = functools.partial(mcmc._single_chain_mcmc, args=args, kwargs={}, collect_fields=fields, remove_sites=())
    return jax.pmap(one), ((jax.random.split(key, 4), None, None),)


funnel, funnel_inputs = chains(script("numpyro/examples/funnel.py").model, 20, jax.random.key(0))

example = script("numpyro/examples/bnn.py")
x, y, _ = example.get_data(N=20, D_X=3)
network, network_inputs = chains(example.model, 10, jax.random.split(jax.random.key(0))[0], x, y, 5)
