//! Classes nested to the supported depth: all traversals run on a small stack.

use std::sync::Arc;

use tracebraid_ctf::schema::{
    ByteOrder, Encoding, FieldClass, Member, OptionalClass, Roles, StructClass, VariantClass,
    VariantOption,
};

/// Number of levels that would overflow a usual stack if a traversal recursed.
const LEVELS: u32 = 200_000;

/// Runs a test on a stack that a few hundred nested calls would exhaust.
fn on_a_small_stack<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> T {
    let thread = std::thread::Builder::new().stack_size(128 << 10).spawn(run);
    thread.unwrap().join().unwrap()
}

fn structure(class: FieldClass) -> FieldClass {
    let name = "x".into();
    FieldClass::Struct(Arc::new(StructClass {
        min_align: 1,
        members: vec![Member { name, class }],
    }))
}

/// Adds one level of each kind around a class.
fn all_kinds(class: FieldClass) -> FieldClass {
    let location = Arc::new(tracebraid_ctf::schema::FieldLocation {
        scope: tracebraid_ctf::schema::Scope::EventHeader,
        paths: vec![vec![0]],
    });
    let array = FieldClass::Array {
        element: Arc::new(class),
        length: 2,
        min_align: 1,
        roles: Roles::NONE,
    };
    let sequence = FieldClass::Sequence {
        element: Arc::new(array),
        length: location.clone(),
        min_align: 1,
    };
    let variant = FieldClass::Variant(Arc::new(VariantClass {
        selector: location.clone(),
        options: vec![VariantOption {
            name: None,
            ranges: Vec::new(),
            class: sequence,
        }],
    }));
    let optional = FieldClass::Optional(Arc::new(OptionalClass {
        selector: location,
        ranges: None,
        element: variant,
    }));
    structure(optional)
}

/// A class with this number of levels around a floating-point number that is aligned to 32 bits.
fn deep(levels: u32) -> FieldClass {
    let leaf = FieldClass::Float {
        length: 64,
        align: 32,
        byte_order: ByteOrder::Little,
        reversed_bits: false,
    };
    (0..levels / 5).fold(leaf, |class, _| all_kinds(class))
}

#[test]
fn field_classes_need_no_stack() {
    on_a_small_stack(|| {
        let class = deep(LEVELS);
        assert_eq!(class.all().count() as u32, LEVELS / 5 * 5 + 1);
        // Optionals have no alignment of their own.
        assert_eq!(class.align(), 1);
        let structures = (0..LEVELS).fold(
            FieldClass::Str {
                encoding: Encoding::Utf8,
            },
            |class, _| structure(class),
        );
        assert_eq!(structures.align(), 8);
        assert!(class == deep(LEVELS));
        assert!(class != deep(LEVELS - 5));
        assert!(format!("{structures:?}").ends_with(&format!(".. }}] }}){}", " }] })".repeat(31))));
        let shared = class.clone();
        drop(class);
        assert_eq!(shared.all().count() as u32, LEVELS / 5 * 5 + 1);
    });
}

#[test]
fn classes_that_threads_share_go_with_the_last_of_them() {
    for _ in 0..10 {
        let class = deep(LEVELS);
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let class = class.clone();
                std::thread::Builder::new()
                    .stack_size(128 << 10)
                    .spawn(move || drop(class))
                    .unwrap()
            })
            .collect();
        drop(class);
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
    }
}

#[test]
fn equality_sees_every_difference() {
    let leaf = |length| FieldClass::StaticStr {
        length,
        encoding: Encoding::Utf8,
    };
    let classes = [
        leaf(1),
        leaf(2),
        FieldClass::Str {
            encoding: Encoding::Utf16Le,
        },
        structure(leaf(1)),
        structure(leaf(2)),
        all_kinds(leaf(1)),
        all_kinds(leaf(2)),
        all_kinds(structure(leaf(1))),
    ];
    for (index, one) in classes.iter().enumerate() {
        for (place, other) in classes.iter().enumerate() {
            assert_eq!(one == other, index == place, "{one:?} {other:?}");
        }
    }
    let member = |class| Member {
        name: "x".into(),
        class,
    };
    let two = StructClass {
        min_align: 1,
        members: vec![member(leaf(1)), member(leaf(1))],
    };
    assert!(FieldClass::Struct(Arc::new(two)) != structure(leaf(1)));
}
