from wasm_kernels import systems


def test_each_system_has_its_own_tags() -> None:
    tags = [tag for system in systems.SYSTEMS.values() for tag in system.tags]
    assert len(tags) == len(set(tags))


def test_fused_builds_have_an_unfused_one() -> None:
    for system in systems.SYSTEMS.values():
        builds = system.builds()
        assert all(systems.unfused_build(isa) in builds for isa in system.isas)
        assert all(systems.UNFUSED in builds[name] for name in builds if name.endswith("_unfused"))


def test_this_machine_has_a_system() -> None:
    assert systems.here() is systems.here()
    assert systems.here().zig_target
